"""Compares checkpoints without loading them: by the bytes of their tensors, whatever their names.

A checkpoint is a zip (see `intake.archive`) that holds each tensor's values as an entry
`<name>/data/<number>` beside the pickle, which is never read.
"""

import hashlib
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from grader.domain.errors import SubmissionError
from grader.intake.archive import MOST_ENTRIES, opened
from grader.intake.archive_pieces import CHUNK
from grader.similarity.compared_work import MOST_TENSORS, SAMPLES, SampledWeights

LEAST_BYTES = 4000  # a thousand values: less is not a model
IDENTICAL = 0.99  # the share of the bytes
COMPARABLE = 0.9  # the share of the bytes, in tensors of sizes that both have
# Relative distance. Measured on the reference's model: rounding to half precision 0.0002, noise of 1 % 0.010,
# one more epoch 0.007 to 0.017; from the same seed, but trained separately with the handed-out rate, 0.35.
NEAR = 0.02
_LARGEST = 1e6  # no weight is larger: these bytes are not float32


def read_weights(file: BinaryIO, name: str) -> SampledWeights:
    """The tensors of a checkpoint. Call it where a hostile file can do no harm.

    Raises:
        SubmissionError: It is not such a zip, or is damaged.
    """
    sizes, digests, samples = [], [], []
    with opened(file, name, MOST_ENTRIES) as archive:
        stored = [
            entry for entry in archive.infolist() if PurePosixPath(entry.filename).parent.name == "data"
        ]
        for entry in stored[:MOST_TENSORS]:
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
                raise SubmissionError(f"{name}: its tensors are compressed, which torch.save never does.")
            try:
                digest, sample = _sampled(archive, entry)
            except (zipfile.BadZipFile, EOFError, ValueError, RuntimeError) as error:
                raise SubmissionError(f"{name}: is damaged; ask for the file again.") from error
            sizes.append(entry.file_size)
            digests.append(digest)
            samples.append(sample)
    grid = np.array(samples, dtype=np.float32).reshape(len(samples), SAMPLES)
    return SampledWeights(tuple(sizes), tuple(digests), grid)


def _sampled(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[str, NDArray[np.float32]]:
    """The digest of an entry's bytes, and SAMPLES of its values at even distances."""
    digest = hashlib.sha256()
    count = entry.file_size // 4
    positions = np.linspace(0, max(count - 1, 0), SAMPLES).astype(np.int64)
    samples = np.zeros(SAMPLES, dtype=np.float32)
    begin = 0
    with archive.open(entry) as source:
        while chunk := source.read(CHUNK):  # a multiple of four bytes, except for the last
            digest.update(chunk)
            values = np.frombuffer(chunk, dtype="<f4", count=len(chunk) // 4)
            in_chunk = (positions >= begin) & (positions < begin + len(values))
            samples[in_chunk] = values[positions[in_chunk] - begin]
            begin += len(values)
    return digest.hexdigest(), samples


@dataclass(frozen=True)
class Likeness:
    """How alike two checkpoints are.

    Attributes:
        identical: Their tensors have the same bytes.
        distance: Relative, 0 for equal values; None if the tensors have different sizes.
    """

    identical: bool
    distance: float | None

    @property
    def near(self) -> bool:
        """Whether the two are identical, or one was made from the other."""
        return self.identical or (self.distance is not None and self.distance <= NEAR)


def likeness(first: SampledWeights, second: SampledWeights) -> Likeness | None:
    """How alike two checkpoints are, or None if one holds too little to tell."""
    mine, theirs = _comparable_tensors(first), _comparable_tensors(second)
    totals = [sum(side.sizes) for side in (mine, theirs)]
    if min(totals) < LEAST_BYTES:
        return None
    equal = Counter(zip(mine.sizes, mine.digests, strict=True)) & Counter(
        zip(theirs.sizes, theirs.digests, strict=True)
    )
    identical = sum(size * times for (size, _), times in equal.items()) >= IDENTICAL * min(totals)
    return Likeness(identical, 0.0 if identical else _distance(mine, theirs, max(totals)))


def _comparable_tensors(weights: SampledWeights) -> SampledWeights:
    """The tensors that are evidence: float32, and not all ones or zeros, as in a new normalization layer."""
    samples = weights.samples
    sound = np.isfinite(samples).all(axis=1) & (
        np.abs(np.nan_to_num(samples)).max(axis=1, initial=0) < _LARGEST
    )
    comparable = np.flatnonzero(sound & (samples != samples[:, :1]).any(axis=1))
    return SampledWeights(
        tuple(weights.sizes[index] for index in comparable),
        tuple(weights.digests[index] for index in comparable),
        samples[comparable],
    )


def _distance(first: SampledWeights, second: SampledWeights, total: int) -> float | None:
    """The relative distance ||a - b|| / max(||a||, ||b||) over sampled values, each tensor with its nearest.

    The order of tensors is that of the class's attributes, which may have been changed.
    """
    apart = scale = 0.0
    compared = 0
    sizes = np.array(second.sizes)
    for size in sorted(set(first.sizes) & set(second.sizes)):
        a = first.samples[np.array(first.sizes) == size].astype(np.float64)
        b = second.samples[sizes == size].astype(np.float64)
        norms_a, norms_b = (a**2).sum(axis=1), (b**2).sum(axis=1)
        squared = np.maximum(norms_a[:, None] + norms_b[None, :] - 2 * a @ b.T, 0)
        nearest = squared.argmin(axis=1)
        apart += size * float(squared.min(axis=1).sum())
        scale += size * float(np.maximum(norms_a, norms_b[nearest]).sum())
        compared += size * min(len(a), len(b))
    if compared < COMPARABLE * total or scale == 0:
        return None
    return float(np.sqrt(apart / scale))
