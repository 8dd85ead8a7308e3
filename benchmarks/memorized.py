"""What tables made from the published images know of the hidden ones, before and after these are perturbed.

Students hold all images with their labels. A table in a source holds some bits of each image and its label;
who is shown a hidden image looks for the entry that is most like it. Such a table is worth what it gains over
an honest neighbor: the same numbers, but of the images that a submission is trained on.
"""

import base64
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.recipes import ASSIGNMENT, real_splits
from benchmarks.section import Section
from grader.analysis import program
from grader.analysis.suspicious_code import written_data
from grader.course.reference_solution import solved_source
from grader.kit.splits import Splits
from grader.training.blinding import grained, perturbed

TITLE = "Memorized: what tables recognize"
COLUMNS = (
    "table",
    "bits of an image",
    "kB in the source",
    "noted",
    "recognized, %",
    "right, %",
    "honest neighbor, %",
    "gain, points",
)
LABEL_BITS = math.log2(6)
RETRIEVAL_BITS = 1.23 * LABEL_BITS  # of a structure that finds labels by keys and does not hold these
SEEDS = (11, 12)  # of the training and of the test images
SEARCHED = 3  # where shifts are tried, one of so many test images is asked
REACH, STEP = 20, 5  # pixels up, down and to each side that are tried
FEW = 1100  # images whose labels a source can hold without being noted
CORRELATED = 4  # one of so many test images is correlated with all


@dataclass(frozen=True)
class Table:
    """A kind of table.

    Attributes:
        bits: Of an image, without its label.
        numbers: Images float32 (n, 1, height, width) -> what is compared, float32 (n, k).
        stored: What is compared -> what is left of it in so many bits.
        searches: Tries the query at many shifts.
    """

    name: str
    bits: int
    numbers: Callable[[Tensor], Tensor]
    stored: Callable[[Tensor], Tensor] = lambda numbers: numbers
    searches: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a table does.

    Attributes:
        recognized: The share of hidden images that are taken for themselves.
        right: The share whose labels are right.
        honest: The same for an honest neighbor.
    """

    recognized: float
    right: float
    honest: float


@dataclass(frozen=True)
class Shown:
    """The published images, and what a submission is shown of them.

    Attributes:
        published: float32 (n, 1, height, width), those of training first.
        training: The training images as they are shown.
        hidden: The test images as they are shown.
        labels: Of all published images, int64 (n,).
    """

    published: Tensor
    training: Tensor
    hidden: Tensor
    labels: Any


def measured() -> Section:
    """All tables, before and after; where the images are not, a section that says so."""
    try:
        splits = real_splits()
    except SystemExit as error:
        said = (f"Not measured: {error}",)
        return Section(TITLE, _text(0, 0), COLUMNS, (), said, "Not measured.", measured=False)
    torch.set_num_threads(1)
    return section(splits)


def section(splits: Splits) -> Section:
    """What all tables gain."""
    before = shown(splits, lambda images, seed: grained(images, [seed]))
    after = shown(splits, lambda images, seed: perturbed(images, [seed]))
    stable = StableNumbers(after.published, shown(splits, lambda images, seed: perturbed(images, [seed, 5])))
    every = len(after.published)
    kinds: list[tuple[str, float, int, Callable[[Shown], Outcome]]] = [
        *(
            (table.name, table.bits + LABEL_BITS, every, partial(neighbors, table))
            for table in (*plain_tables(), *(stable.table(bits) for bits in (8, 16, 32, 64)))
        ),
        *(
            (f"{bits} bits that must all be right", RETRIEVAL_BITS, every, partial(stable.exact, bits, every))
            for bits in (12, 14, 16)
        ),
        (
            f"12 bits that must all be right, {FEW} images",
            RETRIEVAL_BITS,
            FEW,
            partial(stable.exact, 12, FEW),
        ),
        ("64 x 64 pixels, correlated at every shift", 8 * 64 * 64 + LABEL_BITS, every, correlated),
    ]
    rows = []
    for name, bits, count, of in kinds:
        rows.append(_row(name, bits, count, of(before), of(after)))
        print(f"  {' | '.join(rows[-1].cells)}", flush=True)
    text = _text(len(after.published), len(after.hidden))
    return Section(TITLE, text, COLUMNS, tuple(row.cells for row in rows), _verdicts(rows))


def shown(splits: Splits, change: Callable[[Any, int], Any]) -> Shown:
    """What a submission is shown after a change of the images."""
    published = np.concatenate([splits.train_images, splits.test_images])
    labels = np.concatenate([splits.train_labels, splits.test_labels])
    training, hidden = (
        change(images, seed)
        for images, seed in zip((splits.train_images, splits.test_images), SEEDS, strict=True)
    )
    return Shown(_tensor(published), _tensor(training), _tensor(hidden), labels)


def _tensor(images: Any) -> Tensor:
    return torch.from_numpy(images).float()[:, None]


# what is compared: all as the usual libraries for image search have it, or simpler


def blocks(side: int) -> Callable[[Tensor], Tensor]:
    """The means of side x side blocks."""
    return lambda images: F.adaptive_avg_pool2d(images, side).flatten(1)


def unlit(numbers: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Without brightness and contrast."""

    def of(images: Tensor) -> Tensor:
        found = numbers(images)
        found = found - found.mean(1, keepdim=True)
        return found / (found.norm(dim=1, keepdim=True) + 1e-6)

    return of


def differences(images: Tensor) -> Tensor:
    """Whether each of 8 x 9 blocks is darker than the next one (the difference hash)."""
    return torch.sign(F.adaptive_avg_pool2d(images, (8, 9)).diff(dim=-1).flatten(1))


def above_median(images: Tensor) -> Tensor:
    """Whether each of 8 x 8 blocks is brighter than most (the average hash)."""
    means = blocks(8)(images)
    return torch.sign(means - means.median(1, keepdim=True).values)


def cosines(side: int) -> Callable[[Tensor], Tensor]:
    """The lowest frequencies of a cosine transform of 48 x 48 blocks, without the mean."""
    place = (torch.arange(48) + 0.5) / 48
    waves = torch.cos(math.pi * place * torch.arange(side)[:, None])

    def of(images: Tensor) -> Tensor:
        small = F.adaptive_avg_pool2d(images, 48)[:, 0]
        return (waves @ small @ waves.T).flatten(1)[:, 1:]

    return of


def bands(side: int) -> Callable[[Tensor], Tensor]:
    """What is brighter or darker than its surroundings of 4 to 8 pixels, in side x side blocks."""

    def of(images: Tensor) -> Tensor:
        small = F.avg_pool2d(images, 4)
        return blocks(side)(_blurred(small, 1.0) - _blurred(small, 2.0))

    return of


def _blurred(images: Tensor, width: float) -> Tensor:
    reach = int(3 * width)
    bell = torch.exp(-0.5 * (torch.arange(-reach, reach + 1) / width) ** 2)
    bell = bell / bell.sum()
    padded = F.pad(images, (reach,) * 4, mode="reflect")
    return F.conv2d(F.conv2d(padded, bell[None, None, :, None]), bell[None, None, None, :])


def gradients(images: Tensor) -> Tensor:
    """How much of an edge in each of six directions there is in 3 x 3 blocks (a histogram of gradients)."""
    small = F.avg_pool2d(images, 4)
    right, down = small[..., 1:-1, 2:] - small[..., 1:-1, :-2], small[..., 2:, 1:-1] - small[..., :-2, 1:-1]
    size, angle = torch.hypot(right, down), torch.atan2(down, right) % math.pi / math.pi * 6
    chosen = torch.cat([size * (angle.floor().clamp(max=5) == number) for number in range(6)], 1)
    return blocks(3)(chosen)


def projections(count: int) -> Callable[[Tensor], Tensor]:
    """Products with random images of 32 x 32 blocks."""
    directions = torch.randn(count, 32 * 32, generator=torch.Generator().manual_seed(1))
    return lambda images: unlit(blocks(32))(images) @ directions.T


def steps(bits: int) -> Callable[[Tensor], Tensor]:
    """Numbers in steps of so many bits, over two and a half deviations up and down."""

    def of(numbers: Tensor) -> Tensor:
        reach, most = 2.5 * numbers.std(0, keepdim=True) + 1e-9, 2**bits - 1
        middle = numbers.mean(0, keepdim=True)
        share = ((numbers - middle) / reach).clamp(-1, 1)
        return ((share + 1) / 2 * most).round() / most * 2 * reach - reach + middle

    return of


def plain_tables() -> tuple[Table, ...]:
    """The tables that need no preparation."""
    return (
        Table("means of 4 x 4 blocks", 128, blocks(4), steps(8)),
        Table("means of 7 x 7 blocks", 392, blocks(7), steps(8)),
        Table("means of 8 x 8 blocks", 512, blocks(8), steps(8)),
        Table("means of 4 x 4 blocks, unlit", 64, unlit(blocks(4)), steps(4)),
        Table("means of 8 x 8 blocks, unlit", 256, unlit(blocks(8)), steps(4)),
        Table("average hash", 64, above_median),
        Table("difference hash", 64, differences),
        Table("cosine transform 4 x 4, unlit", 60, unlit(cosines(4)), steps(4)),
        Table("perceptual hash", 63, lambda images: torch.sign(cosines(8)(images))),
        Table("bands in 8 x 8 blocks, signs", 64, lambda images: torch.sign(bands(8)(images))),
        Table("bands in 16 x 16 blocks, signs", 256, lambda images: torch.sign(bands(16)(images))),
        Table("histograms of gradients", 216, unlit(gradients), steps(4)),
        Table("random projections, 64 signs", 64, lambda images: torch.sign(projections(64)(images))),
        Table("random projections, 128 signs", 128, lambda images: torch.sign(projections(128)(images))),
        Table("means of 4 x 4 blocks, shifts tried", 128, blocks(4), steps(8), searches=True),
        Table("cosine transform 4 x 4, unlit, shifts tried", 60, unlit(cosines(4)), steps(4), searches=True),
        Table(
            "perceptual hash, shifts tried", 63, lambda images: torch.sign(cosines(8)(images)), searches=True
        ),
        Table(
            "bands in 8 x 8 blocks, signs, shifts tried",
            64,
            lambda images: torch.sign(bands(8)(images)),
            searches=True,
        ),
    )


def neighbors(table: Table, images: Shown) -> Outcome:
    """How a table does that is asked for the entry most like each hidden image."""
    every = slice(None, None, SEARCHED if table.searches else 1)
    asked = list(_views(images.hidden[every], searches=table.searches))
    queries = [table.numbers(each) for each in asked]
    entries, honest = (
        table.numbers(next(_views(each, searches=table.searches, middle=True)))
        for each in (images.published, images.training)
    )
    trained = len(images.training)
    known = _distances(queries, table.stored(entries))
    found = known.argmin(1)
    place = trained + torch.arange(len(images.hidden))[every]
    truth = images.labels[place.numpy()]
    # the published training images are permitted too: whichever is better
    fair = [images.labels[_distances(queries, honest).argmin(1).numpy()]]
    fair.append(images.labels[known[:, :trained].argmin(1).numpy()])
    return Outcome(
        float((found == place).float().mean()),
        float((images.labels[found.numpy()] == truth).mean()),
        max(float((labels == truth).mean()) for labels in fair),
    )


def _views(images: Tensor, *, searches: bool, middle: bool = False) -> Iterator[Tensor]:
    """The images as they are asked for: whole, or their inner part at many shifts, or only in the middle."""
    if not searches:
        yield images
        return
    size = images.shape[-1] - 2 * REACH
    offsets = (0,) if middle else range(-REACH, REACH + 1, STEP)
    for down in offsets:
        for right in offsets:
            top, left = REACH + down, REACH + right
            yield images[..., top : top + size, left : left + size]


def _distances(queries: Sequence[Tensor], entries: Tensor) -> Tensor:
    """From each query to each entry, the least over all views of the query, (queries, entries)."""
    return torch.stack([torch.cdist(each, entries) for each in queries]).amin(0)


class StableNumbers:
    """Those combinations of many numbers that a perturbation changes least, and images differ in most.

    Whoever makes a table knows the code that perturbs, and can try which numbers it leaves alone: a linear
    discriminant analysis in which every image is a class of its own.
    """

    def __init__(self, published: Tensor, trial: Shown) -> None:
        """Choose the combinations.

        Args:
            published: The published images.
            trial: The same, perturbed once, by another seed than those that are asked for.
        """
        plain = _many_numbers(published)
        changed = _many_numbers(torch.cat([trial.training, trial.hidden]))
        noise = changed - plain
        scale = noise.var(0).mean()
        values, axes = torch.linalg.eigh(
            noise.T @ noise / len(noise) + 1e-3 * scale * torch.eye(plain.shape[1])
        )
        white = axes / values.sqrt()
        centered = (plain - plain.mean(0)) @ white
        _, _, directions = torch.linalg.svd(centered, full_matrices=False)
        self._mean, self._axes = plain.mean(0), white @ directions.T

    def _of(self, images: Tensor, count: int) -> Tensor:
        return (_many_numbers(images) - self._mean) @ self._axes[:, :count]

    def table(self, bits: int) -> Table:
        """A table of the best combinations, two bits each."""
        return Table(
            f"most stable numbers, {bits} bits", bits, lambda images: self._of(images, bits // 2), _quarters
        )

    def exact(self, bits: int, count: int, images: Shown) -> Outcome:
        """How a table does that holds labels only, at places that so many bits of an image tell.

        It takes three bits for an image and no more, but whoever misses a bit finds any label. An honest one
        has the places of the permitted images.

        Args:
            count: Of the images that are in the table, chosen at random: nobody knows which are hidden.
        """
        numbers = [self._of(each, bits) for each in (images.published, images.hidden, images.training)]
        published, hidden, training = (_places(each, numbers[0], bits) for each in numbers)
        labels, trained = images.labels, len(images.training)
        kept = np.random.default_rng(1).permutation(len(labels))[:count]
        truth, chance = labels[trained:], 1 / len(set(labels.tolist()))
        known = np.isin(np.arange(trained, len(labels)), kept)
        return Outcome(
            float(((hidden == published[trained:]) & known).mean()),
            _right(published[kept], labels[kept], hidden, truth, chance),
            max(
                _right(each, labels[:trained], hidden, truth, chance)
                for each in (published[:trained], training)
            ),
        )


def _many_numbers(images: Tensor) -> Tensor:
    """Numbers of all kinds, float32 (n, k)."""
    return torch.cat([blocks(8)(images), bands(8)(images), cosines(6)(images) / 48], 1)


def _quarters(numbers: Tensor) -> Tensor:
    """Numbers in four steps with as many images each: the middle of each step."""
    order = numbers.argsort(0).argsort(0)
    quarter = order * 4 // len(numbers)
    made = torch.zeros_like(numbers)
    for number in range(4):
        inside = (quarter == number).float()
        made += inside * ((numbers * inside).sum(0) / inside.sum(0))
    return made


def _places(numbers: Tensor, all_numbers: Tensor, bits: int) -> Any:
    """So many bits of each image as one number: of the most stable numbers more bits than of others."""
    found = np.zeros(len(numbers), dtype=np.int64)
    left, column = bits, 0
    while left > 0:
        own = min(4 if column < 2 else 2, left)
        edges = torch.quantile(all_numbers[:, column], torch.arange(1, 2**own) / 2**own)
        found = found * 2**own + torch.bucketize(numbers[:, column].contiguous(), edges).numpy()
        left, column = left - own, column + 1
    return found


def _right(places: Any, labels: Any, asked: Any, truth: Any, chance: float) -> float:
    """The share of right labels: the most frequent one of a place, any at a place that nobody has."""
    counts: dict[int, Counter[int]] = {}
    for place, label in zip(places.tolist(), labels.tolist(), strict=True):
        counts.setdefault(place, Counter())[label] += 1
    known = {place: count.most_common(1)[0][0] for place, count in counts.items()}
    hits = [
        chance if place not in known else float(known[place] == label)
        for place, label in zip(asked.tolist(), truth.tolist(), strict=True)
    ]
    return float(np.mean(hits))


def correlated(images: Shown) -> Outcome:
    """What could be known at most, with all images at 64 x 64 pixels: the best correlation at any shift."""
    spectra = [_spectrum(each) for each in (images.hidden[::CORRELATED], images.published, images.training)]
    asked, published, training = spectra
    trained = len(images.training)
    known, fair = (
        torch.stack([_best_correlation(each, entries) for each in asked]) for entries in (published, training)
    )
    place = trained + torch.arange(len(images.hidden))[::CORRELATED]
    truth = images.labels[place.numpy()]
    found = known.argmax(1)
    return Outcome(
        float((found == place).float().mean()),
        float((images.labels[found.numpy()] == truth).mean()),
        max(
            float((images.labels[each.argmax(1).numpy()] == truth).mean())
            for each in (fair, known[:, :trained])
        ),
    )


def _spectrum(images: Tensor) -> Tensor:
    """Of unlit images of 64 x 64 pixels in a frame of zeros."""
    small = F.adaptive_avg_pool2d(images, 64)[:, 0]
    small = small - small.mean((1, 2), keepdim=True)
    return torch.fft.rfft2(small / small.norm(dim=(1, 2), keepdim=True), s=(96, 96))


def _best_correlation(query: Tensor, entries: Tensor) -> Tensor:
    """With each entry, the highest at any shift."""
    parts = [torch.fft.irfft2(query * part.conj(), s=(96, 96)).amax((1, 2)) for part in entries.split(200)]
    return torch.cat(parts)


@dataclass(frozen=True)
class Row:
    """A row of the section.

    Attributes:
        noted: Whether the table is noted for a person where it stands in the reference.
    """

    cells: tuple[str, ...]
    noted: bool
    before: Outcome
    after: Outcome


def _row(name: str, bits: float, count: int, before: Outcome, after: Outcome) -> Row:
    letters = math.ceil(bits * count / 6)
    noted = is_noted(letters)
    gains = (100 * (before.right - before.honest), 100 * (after.right - after.honest))
    cells = (
        name,
        f"{bits:.0f}" if bits > 10 else f"{bits:.1f}",
        f"{letters / 1000:.1f}",
        "yes" if noted else "no",
        f"{100 * before.recognized:.0f} → {100 * after.recognized:.0f}",
        f"{100 * before.right:.0f} → {100 * after.right:.0f}",
        f"{100 * before.honest:.0f} → {100 * after.honest:.0f}",
        f"{gains[0]:+.0f} → {gains[1]:+.0f}",
    )
    return Row(cells, noted, before, after)


def is_noted(letters: int) -> bool:
    """Whether so many letters of base64 in the reference are noted for a person."""
    path = ASSIGNMENT.folder / "solution.py"
    homework = solved_source(path.read_text(encoding="utf-8"), path.name)
    table = base64.b64encode(random.Random(1).randbytes(letters)).decode()[:letters]
    made = program(
        "homework.py",
        f"{homework}\nTABLE = '{table}'\n".encode(),
        ASSIGNMENT.program_rules,
    )
    return bool(written_data(made))


def _text(count: int, asked: int) -> str:
    tried = len(range(-REACH, REACH + 1, STEP)) ** 2
    return (
        f"Tables of the {count} published images, of which {asked} are hidden test images of a submission: "
        "the real images, split as students split them. *Before*: every gray value is up to one step other; "
        "*after*: the images are moved, bent, lit and grained at random, as `grader.training.blinding` "
        "does it. *Recognized*: the entry that is most like a hidden image is its own. *Right*: that entry's "
        "label is. *Honest neighbor*: the same numbers of the images that a submission is trained on, as "
        f"published or as shown, whichever is better. *Shifts tried*: the best of {tried} shifts by up to "
        f"{REACH} pixels, for one in {SEARCHED} hidden images. *Most stable numbers*: what whoever knows the "
        "code of the perturbation would choose. *Bits that must all be right*: labels only, found by these "
        "bits of an image, at three bits for each image (a retrieval structure). *Noted*: for a person, "
        "where the table stands in base64 in the reference. Each cell: before → after."
    )


def _verdicts(rows: Sequence[Row]) -> tuple[str, ...]:
    noted, others = ([row for row in rows if row.noted is each] for each in (True, False))
    honest = max(row.after.honest for row in rows)
    found = [
        f"Tables that are noted: {len(noted)}, of which the best has {_best(noted, 0)} right before and "
        f"{_best(noted, 1)} after; the best honest neighbor has {honest:.0%}."
    ]
    if others:
        found.append(
            f"Tables that are not: {len(others)}, of which the best has {_best(others, 0)} right before and "
            f"{_best(others, 1)} after: it gains something over the best honest neighbor "
            f"{'still' if max(row.after.right for row in others) > honest else 'no more'}."
        )
    return tuple(found)


def _best(rows: Sequence[Row], which: int) -> str:
    return f"{max((row.before, row.after)[which].right for row in rows):.0%}"
