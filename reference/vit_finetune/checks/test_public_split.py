"""Public checks of the stratified split."""

import numpy as np
import pytest
import torch

from grader.kit import Mismatch

COUNTS = (23, 17, 31, 12)  # images of each class, for the split
SIZES = (7, 2, 3)  # of which each part should get so many
DRAWS = "default_rng() | RandomState() | seed() | Random() | Generator() | manual_seed()"


@pytest.mark.component("stratified_split")
@pytest.mark.weight(0.25)
def test_split_has_its_sizes(student):
    """Each part has as many images as were asked for."""
    parts = student.call("stratified_split", [0, 1] * 10, (6, 4), 3).returned.items(2, "index arrays")
    for number, (part, size) in enumerate(zip(parts, (12, 8), strict=True)):
        found = len(part.array(None, whole=True))
        if found != size:
            raise Mismatch(
                f"For two classes of 10 images and per_class=(6, 4), part {number} has {found} indices; it "
                f"should have {size}.",
                hint="Take per_class[k] images of every class as they are: no share is needed.",
                look_for="int() | round(), _ // sum() | _ / sum()",
            )


def split_labels(student):
    """Shuffled labels of classes of different sizes."""
    labels = np.repeat(np.arange(len(COUNTS)), COUNTS)
    return labels[torch.randperm(len(labels), generator=student.random).numpy()]


def split_of(student, labels, seed=5):
    """The parts, as arrays of indices of the labels."""
    found = student.call("stratified_split", labels, SIZES, seed).returned.items(3, "index arrays")
    parts = [part.array(None, whole=True) for part in found]
    if any(len(part) and not (part.min() >= 0 and part.max() < len(labels)) for part in parts):
        raise Mismatch(
            f"For {len(labels)} labels the parts hold numbers that are not between 0 and {len(labels) - 1}.",
            hint="A part holds indices of the labels, not the labels themselves.",
        )
    return parts


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes")
@pytest.mark.weight(0.25)
def test_split_takes_the_same_from_each_class(student):
    """Each part has exactly per_class images of every class, however large the class is."""
    labels = split_labels(student)
    parts = split_of(student, labels)
    counts = [np.bincount(labels[part], minlength=len(COUNTS)).tolist() for part in parts]
    wrong = [number for number, size in enumerate(SIZES) if set(counts[number]) != {size}]
    if not wrong:
        return
    indices = np.concatenate(parts).tolist()
    if max(indices, default=0) < max(COUNTS) and len(set(indices)) < len(indices):
        raise Mismatch(
            f"For {len(labels)} images no index is above {max(indices)}, and some occur several times: they "
            "count within a class, and point at images of other classes.",
            hint="np.flatnonzero(labels == label) are the indices of a class: shuffle and cut these.",
            look_for="permutation() | arange() | shuffle()",
        )
    number = wrong[0]
    all_fit = [sum(each) for each in counts] == [size * len(COUNTS) for size in SIZES]
    raise Mismatch(
        f"Of classes with {', '.join(map(str, COUNTS))} images, part {number} gets "
        f"{', '.join(map(str, counts[number]))}; with per_class={SIZES} it should get {SIZES[number]} of "
        "each.",
        hint="Shuffle and cut the indices of each class by themselves, and leave labels in their order: an "
        "index counts in the labels as they are given."
        if all_fit
        else "Take per_class[k] images of every class as they are: no share is needed.",
        look_for="permutation() | shuffle() | randperm() | sample()" if all_fit else "_ // sum() | _ / sum()",
    )


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes", "split_takes_the_same_from_each_class")
@pytest.mark.weight(0.25)
def test_split_parts_have_no_image_in_common(student):
    """No image is in two parts, or twice in one."""
    indices = np.concatenate(split_of(student, split_labels(student))).tolist()
    shared = len(indices) - len(set(indices))
    if shared:
        raise Mismatch(
            f"Of the {len(indices)} indices in all parts, {shared} are there once more.",
            hint="Begin each part where the one before it ends: at the sum of all counts before it.",
            look_for="_[:_]",
        )


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes", "split_takes_the_same_from_each_class")
@pytest.mark.weight(0.25)
def test_split_depends_on_its_seed(student):
    """The same seed gives the same parts, and another seed gives others."""
    labels = split_labels(student)
    first, again, *others = (
        [set(part.tolist()) for part in split_of(student, labels, seed)] for seed in (5, 5, 6, 7)
    )
    if first != again:
        raise Mismatch(
            "Two calls with the same labels and the same seed give different parts.",
            hint="Draw everything from one generator: np.random.default_rng(seed).",
            look_for=DRAWS,
        )
    if all(other == first for other in others):
        raise Mismatch(
            "The seeds 5, 6 and 7 give the same parts.",
            hint="Shuffle the indices of each class by a generator that is made with the seed.",
            look_for="flatnonzero() | nonzero() | where()",
        )


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes")
@pytest.mark.weight(0.25)
def test_split_raises_for_too_few(student):
    """A class that has fewer images than the parts need raises ValueError."""
    enough = np.repeat(np.arange(3), (9, 8, 9))
    student.call("stratified_split", enough, (5, 3), 1).returned.items(2, "index arrays")
    labels = np.repeat(np.arange(3), (9, 7, 9))
    try:
        student.call("stratified_split", labels, (5, 3), 1)
    except Mismatch as error:
        if "ValueError" in error.concerns or "ValueError" in error.message:
            return
        raise Mismatch(
            "With per_class=(5, 3) and a class of 7 images another error than ValueError is raised.",
            hint="Compare the number of images with sum(per_class), and raise ValueError.",
            look_for="raise",
        ) from error
    raise Mismatch(
        "With per_class=(5, 3) and a class of 7 images no ValueError is raised.",
        hint="Compare the number of images of each class with sum(per_class).",
        look_for="for",
    )
