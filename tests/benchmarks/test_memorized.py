"""The measures of what is memorized, on generated images and given records."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import honest_pairs, memorized
from benchmarks.honest_pairs import Pair, interval
from benchmarks.training_records import Record, digest
from grader.kit.splits import Splits
from grader.training.blinding import grained, perturbed


@pytest.fixture(scope="module")
def splits() -> Splits:
    """Two classes of smooth noise that differ in brightness only a little: 40 images each."""
    random = np.random.default_rng(1)
    coarse = random.normal(size=(80, 12, 12)).repeat(16, 1).repeat(16, 2)
    labels = np.tile([0, 1], 40).astype(np.int64)
    images = np.clip(120 + 30 * coarse + 3 * labels[:, None, None], 0, 255).astype(np.uint8)
    names = tuple(map(str, range(80)))
    return Splits(
        "noise", ("a", "b"), images[:50], labels[:50], names[:50], images[50:], labels[50:], names[50:]
    )


@pytest.fixture(scope="module")
def before(splits: Splits) -> memorized.Shown:
    return memorized.shown(splits, lambda images, seed: grained(images, [seed]))


@pytest.fixture(scope="module")
def after(splits: Splits) -> memorized.Shown:
    return memorized.shown(splits, lambda images, seed: perturbed(images, [seed]))


@pytest.mark.parametrize("table", memorized.plain_tables(), ids=lambda table: table.name)
def test_every_table_knows_images_that_are_nearly_the_published_ones(
    table: memorized.Table, before: memorized.Shown
) -> None:
    """And an honest neighbor knows nothing of noise: the measure tells them apart."""
    found = memorized.neighbors(table, before)
    assert found.recognized > 0.9 and found.right > 0.9
    assert found.honest < 0.9 * found.right


def test_a_perturbation_costs_tables_more_than_it_costs_honest_neighbors(
    before: memorized.Shown, after: memorized.Shown
) -> None:
    table = next(each for each in memorized.plain_tables() if each.name == "random projections, 64 signs")
    known, lost = memorized.neighbors(table, before), memorized.neighbors(table, after)
    assert lost.recognized < 0.7 * known.recognized


def test_labels_that_are_found_by_exact_bits_are_lost_with_them(
    splits: Splits, before: memorized.Shown, after: memorized.Shown
) -> None:
    stable = memorized.StableNumbers(before.published, before)
    assert stable.exact(12, 80, before).right > 0.9
    assert stable.exact(12, 80, after).recognized < 0.6
    few = stable.exact(12, 40, before)
    assert 0.2 < few.recognized < 0.8, "half of the images are not in it"


def test_shifts_are_found_where_they_are_tried(before: memorized.Shown) -> None:
    moved = replace(before, hidden=torch.roll(before.hidden, (10, -15), (2, 3)))
    plain, searching = (
        memorized.Table("means", 0, memorized.blocks(8), searches=searches) for searches in (False, True)
    )
    assert memorized.neighbors(plain, moved).recognized < 0.5
    assert memorized.neighbors(searching, moved).recognized > 0.9


@pytest.mark.slow
def test_only_small_tables_are_not_noted() -> None:
    assert not memorized.is_noted(200)
    assert memorized.is_noted(1800)
    most = math.ceil(memorized.RETRIEVAL_BITS * memorized.FEW / 6)
    assert not memorized.is_noted(most) and memorized.is_noted(round(1.1 * most)), "as many as fit"


def test_without_the_images_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEU_CLS", str(tmp_path / "nowhere.zip"))
    found = memorized.measured()
    assert not found.measured
    assert "nowhere.zip" in found.verdicts[0]


def test_the_interval_of_differences_is_students() -> None:
    """Of ten differences with a deviation of 1: 2.2622 / sqrt(10) on both sides of the mean."""
    differences = [1.0, -1.0] * 5
    deviation = (10 / 9) ** 0.5
    low, high = interval(differences)
    assert high == pytest.approx(2.2622 * deviation / 10**0.5) and low == pytest.approx(-high)


def records(differences: list[float]) -> list[Record]:
    """Both trainings of a pair for each difference, in points."""
    made = []
    for seed, difference in enumerate(differences, start=1):
        for without, accuracy in zip(honest_pairs.kinds(), (0.8, 0.8 + difference / 100), strict=True):
            record = Record(
                honest_pairs.NAME,
                without,
                digest(honest_pairs.source()),
                seed,
                15,
                400,
                539,
                1.0,
                1.0,
                1,
                "cpu",
                "a processor",
                "2.0",
                "2026-01-02",
                accuracy,
            )
            made.append(record)
    return made


@pytest.mark.slow
def test_a_pair_counts_when_both_of_its_trainings_are_done() -> None:
    made = records([1.0, -0.5])
    assert honest_pairs.pairs(made[:-1]) == [Pair(1, 80.0, pytest.approx(81.0))]
    assert len(honest_pairs.pairs(made)) == 2
    stale = [replace(record, without=record.without.replace("nothing (", "nothing (0")) for record in made]
    assert honest_pairs.pairs(stale) == [], "of a perturbation that was another"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("differences", "words"),
    [
        ([0.2, -0.2] * 6, "within 1.5 points of zero is asked for: holds."),
        ([-1.4, -0.9] * 6, "within 1.5 points of zero is asked for: holds."),
        ([-1.9, -1.4] * 6, "falls short."),
        ([3.0, -3.0] * 6, "falls short."),
        ([0.2] * 3, "3 of "),
    ],
)
def test_the_verdict_is_on_the_whole_interval(differences: list[float], words: str) -> None:
    found = honest_pairs.section(honest_pairs.pairs(records(differences)), records(differences))
    assert words in found.verdicts[0]
    assert len(found.rows) == len(differences)
