"""What is trained on a GPU, trained on a processor: accuracies mean nothing, but all of it runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import cifar10_gpu
from benchmarks.cifar10_gpu import (
    DEEP,
    GOALS,
    HYBRID,
    MOST_PARAMETERS,
    PARTS,
    PLAIN,
    RESNET,
    SHORT_TITLE,
    Planned,
    Recipe,
    batches,
    made_model,
    parameters,
    schedule,
    section,
    standardized,
    trained,
    whole,
)
from benchmarks.gpu_augmentation import cropped, cut_mixed, rand_augmented
from benchmarks.training_records import keep_instead, kept
from grader.kit.splits import Splits

TINY = replace(PLAIN, sizes={"dim": 16, "depth": 1, "heads": 2}, epochs=2, batch_size=8)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Chance is the same in every run."""
    torch.manual_seed(1)


@pytest.fixture
def images() -> Splits:
    """Two gray images of each class to train on and one to test."""
    labels = np.repeat(np.arange(10), 2)
    pictures = (np.full((20, 32, 32, 3), 25.0) * labels[:, None, None, None]).astype(np.uint8)
    names = tuple(f"{number}.png" for number in range(20))
    return Splits(
        "toys", tuple("abcdefghij"), pictures, labels, names, pictures[::2], labels[::2], names[::2]
    )


def noise(count: int) -> torch.Tensor:
    return torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(2))


# --- models ----------------------------------------------------------------------------------------------


def test_the_models_are_as_large_as_those_that_they_are_set_beside() -> None:
    assert parameters(made_model(DEEP, 0)) == 4_028_170, "the published deep ViT's"
    assert parameters(made_model(HYBRID, 0)) <= MOST_PARAMETERS
    assert parameters(made_model(RESNET, 0)) == 11_173_962
    for recipe, _, _ in GOALS.values():
        assert made_model(recipe, 0).eval()(noise(2)).shape == (2, 10)


def test_each_part_is_changed_alone() -> None:
    plain = PARTS[""]
    others = [each for name, each in PARTS.items() if name]
    assert len({repr(each) for each in (plain, *others)}) == len(PARTS)
    for each in others:
        assert replace(each, sizes=plain.sizes, augmented=True) == plain


# --- images ----------------------------------------------------------------------------------------------


def test_crops_move_and_mirror_and_change_nothing_else() -> None:
    images = noise(40)
    moved = cropped(images)
    assert moved.shape == images.shape and not torch.equal(moved, images)
    padded = torch.nn.functional.pad(images, (4,) * 4)
    windows = padded.unfold(2, 32, 1).unfold(3, 32, 1).permute(0, 2, 3, 1, 4, 5)  # (n, 9, 9, 3, 32, 32)
    mirrored = 0
    for number, image in enumerate(moved):
        straight = (windows[number] == image).flatten(2).all(2).any()
        turned = (windows[number] == image.flip(-1)).flatten(2).all(2).any()
        assert straight or turned
        mirrored += int(turned)
    assert 8 < mirrored < 32


def test_two_operations_are_within_their_ranges_and_some_images_keep_what_they_are() -> None:
    images = noise(400)
    varied = rand_augmented(images)
    assert varied.shape == images.shape and varied.min() >= 0 and varied.max() <= 1
    same = (varied - images).abs().amax((1, 2, 3)) < 1e-6
    # both are the identity in one of 169; auto-contrast and posterizing change noise a little
    assert 0 < int(same.sum()) < 40
    gray = torch.full((400, 3, 32, 32), 0.5)
    assert 0.3 < rand_augmented(gray).mean() < 0.6


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_is_not_ones_own_is_the_neighbors(share: float) -> None:
    images = torch.arange(50.0).view(50, 1, 1, 1).expand(50, 3, 32, 32)
    mixed, own = cut_mixed(images, share)
    assert bool(((mixed == images) | (mixed == images.roll(1, 0))).all())
    assert torch.allclose((mixed == images).float().mean((1, 2, 3)), own)
    assert (own.min() < 0.5) == (share > 0) and own.max() <= 1
    if share == 0:
        assert torch.equal(mixed, images)


def test_a_batch_has_its_images_labels_and_its_neighbors_labels(images: Splits) -> None:
    pixels = torch.from_numpy(images.train_images).permute(0, 3, 1, 2)
    labels = torch.from_numpy(images.train_labels)
    recipe = replace(TINY, augmented=False, mixed=1.0)
    seen = []
    for batch, own, neighbors, share in batches(recipe, pixels, labels):
        assert batch.shape == (8, 3, 32, 32)
        levels = standardized((25.0 * torch.arange(10)).view(10, 1, 1, 1).expand(10, 3, 32, 32) / 255)
        for image, label, other, part in zip(batch, own, neighbors, share, strict=True):
            matches = (image == levels[label]).all(0)
            assert bool((matches | (image == levels[other]).all(0)).all())
            assert label == other or matches.float().mean() == pytest.approx(float(part))
        seen += own.tolist()
    assert len(seen) == 16


# --- trainings -------------------------------------------------------------------------------------------


def test_the_rate_rises_falls_and_ends_near_nothing() -> None:
    rates = [schedule(step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.1) and max(rates) == 1 and rates[-1] < 0.001
    assert rates.index(1.0) == 9 and rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize(
    "recipe", [TINY, replace(TINY, sgd=True, rate=0.1), replace(TINY, varied=True, mixed=0.5, smoothing=0.1)]
)
def test_a_training_leaves_a_record_that_is_found_again(
    recipe: Recipe, images: Splits, tmp_path: Path
) -> None:
    planned = Planned("plain ViT", "", recipe, seed=1)
    keep_instead(tmp_path / "records.json", trained(planned, images, "cpu"))
    [record] = kept(tmp_path / "records.json")
    assert planned.done([record]) == record and record.images == 10 and record.device == "cpu"
    assert replace(planned, seed=2).done([record]) is None
    assert replace(planned, recipe=replace(recipe, rate=0.2)).done([record]) is None


@pytest.mark.slow
def test_a_model_learns(images: Splits) -> None:
    recipe = replace(TINY, epochs=60, rate=1e-2, augmented=False)
    record = trained(Planned("plain ViT", "", recipe, 1), images, "cpu")
    assert record.correct >= 7, "ten grays are told apart"


@pytest.mark.slow
def test_what_is_not_measured_is_said_and_what_is_has_its_mean(images: Splits) -> None:
    planned = whole()
    nothing = section(planned, [])
    assert not nothing.measured and {row[3] for row in nothing.rows} == {"not measured"}
    assert nothing.verdicts[-1] == f"{len(planned)} of {len(planned)} trainings are not done."
    tiny = trained(Planned("plain ViT", "", TINY, 1), images, "cpu")

    def record(each: Planned, correct: int) -> object:
        return replace(
            tiny,
            recipe=each.title,
            without=each.changed,
            digest=cifar10_gpu.digest(each.code),
            seed=each.seed,
            correct=correct,
            images=10_000,
        )

    chosen = {("plain ViT", ""): 7_600, (SHORT_TITLE, ""): 7_000, (SHORT_TITLE, "depth 3"): 6_800}
    made = [
        record(each, chosen[each.title, each.changed] + 10 * each.seed)
        for each in planned
        if (each.title, each.changed) in chosen
    ]
    found = section(planned, made)  # type: ignore[arg-type]
    rows = {row[:2]: row[2:] for row in found.rows}
    assert rows["plain ViT", ""][1:4] == ("76.20 ± 0.10", "", "3")
    assert rows[SHORT_TITLE, "depth 3"][2] == "-2.00 ± 0.00"
    [said] = [each for each in found.verdicts if each.startswith("plain ViT")]
    assert "beside 76.23 % (a course notebook): 76.2 %" in said and said.endswith("holds.")
