"""Compares checkpoints without loading them: by the bytes of their tensors, whatever their names.

A checkpoint is a zip (see `intake.archive`) that holds each tensor's values as an entry
`<name>/data/<number>` beside the pickle, which is never read; or a file of safetensors, whose header is JSON
and says where the values are. Weights that the course handed out are nobody's: only what a student's training
changed about them is compared.
"""

import hashlib
import json
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, BinaryIO

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
_LENGTH, _MOST_HEADER = 8, 8_000_000  # bytes: of the number before a header of safetensors, and of the header
_NOTES = "__metadata__"  # the entry of that header that is no tensor


def read_weights(file: BinaryIO, name: str) -> SampledWeights:
    """The tensors of a checkpoint. Call it where a hostile file can do no harm.

    Raises:
        SubmissionError: It is no such file, or is damaged.
    """
    beginning = file.read(_LENGTH + 1)
    file.seek(0)
    sampled = _of_safetensors(file, name) if beginning.endswith(b"{") else _of_zip(file, name)
    sizes, digests, samples = [], [], []
    for size, digest, sample in sampled:
        sizes.append(size)
        digests.append(digest)
        samples.append(sample)
    grid = np.array(samples, dtype=np.float32).reshape(len(samples), SAMPLES)
    return SampledWeights(tuple(sizes), tuple(digests), grid)


_Sampled = tuple[int, str, NDArray[np.float32]]
"""(The size of a tensor in bytes, the digest of its bytes, SAMPLES of its values)."""


def _of_zip(file: BinaryIO, name: str) -> Iterator[_Sampled]:
    with opened(file, name, MOST_ENTRIES) as archive:
        stored = [
            entry for entry in archive.infolist() if PurePosixPath(entry.filename).parent.name == "data"
        ]
        for entry in stored[:MOST_TENSORS]:
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
                raise SubmissionError(f"{name}: its tensors are compressed, which torch.save never does.")
            try:
                with archive.open(entry) as source:
                    yield _sampled(source, entry.file_size)
            except (zipfile.BadZipFile, EOFError, ValueError, RuntimeError) as error:
                raise _damaged(name) from error


def _of_safetensors(file: BinaryIO, name: str) -> Iterator[_Sampled]:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(_LENGTH), "little")
    try:
        header: Any = json.loads(file.read(length)) if length <= _MOST_HEADER else None
        places = sorted(
            (int(begin), int(end))
            for key, entry in header.items()
            if key != _NOTES
            for begin, end in [entry["data_offsets"]]
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise _damaged(name) from error
    position = 0  # each byte belongs to one tensor at most
    for begin, end in places[:MOST_TENSORS]:
        if not position <= begin <= end <= size - _LENGTH - length:
            raise _damaged(name)
        file.seek(_LENGTH + length + begin)
        yield _sampled(file, end - begin)
        position = end


def _damaged(name: str) -> SubmissionError:
    return SubmissionError(f"{name}: is damaged; ask for the file again.")


def _sampled(source: IO[bytes], size: int) -> _Sampled:
    """A tensor that a file goes on with: its size, digest and samples at even distances."""
    digest = hashlib.sha256()
    count = size // 4
    positions = np.linspace(0, max(count - 1, 0), SAMPLES).astype(np.int64)
    samples = np.zeros(SAMPLES, dtype=np.float32)
    begin, left = 0, size
    while left and (chunk := source.read(min(CHUNK, left))):  # a multiple of four bytes, except for the last
        left -= len(chunk)
        digest.update(chunk)
        values = np.frombuffer(chunk, dtype="<f4", count=len(chunk) // 4)
        in_chunk = (positions >= begin) & (positions < begin + len(values))
        samples[in_chunk] = values[positions[in_chunk] - begin]
        begin += len(values)
    return size, digest.hexdigest(), samples


def without_given(weights: SampledWeights, given: SampledWeights) -> SampledWeights:
    """The tensors that differ from all that the course handed out, as differences from what they began as.

    Two students who adapt one pretrained model have most of its values in common. A tensor began as the given
    one of its size that is nearest to it, if that is nearer than zeros are.
    """
    known = set(zip(given.sizes, given.digests, strict=True))
    changed = [
        index
        for index, tensor in enumerate(zip(weights.sizes, weights.digests, strict=True))
        if tensor not in known
    ]
    samples = weights.samples[changed]
    sizes = np.array(given.sizes)
    for row, index in enumerate(changed):
        candidates = np.nan_to_num(given.samples[sizes == weights.sizes[index]].astype(np.float64))
        own_values = np.nan_to_num(samples[row].astype(np.float64))
        distances = ((candidates - own_values) ** 2).sum(axis=1)
        if len(distances) and distances.min() < (own_values**2).sum():
            samples[row] -= candidates[distances.argmin()].astype(np.float32)
    return SampledWeights(
        tuple(weights.sizes[index] for index in changed),
        tuple(weights.digests[index] for index in changed),
        samples,
    )


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
