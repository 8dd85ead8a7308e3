"""stratified_split: a partition with exact sizes in every class."""

import numpy as np
import pytest
import torch

from grader.kit import Mismatch

pytestmark = pytest.mark.component("stratified_split")
COUNTS = (23, 17, 31, 12)  # images of each class
SIZES = (7, 2, 3)


def labels_of(student):
    """Shuffled labels of classes of different sizes."""
    random = np.random.default_rng(student.next_seed())
    return random.permutation(np.repeat(np.arange(len(COUNTS)), COUNTS))


def split(student, reference, labels, sizes, seed):
    """The parts as arrays of indices."""
    found = student.call("stratified_split", labels, sizes, seed).returned.items(
        len(sizes), f"index arrays, one for each of per_class={sizes}"
    )
    return [reference.oracle.rows(part) for part in found]


def described(labels, found):
    """What is told of parts for naming a mistake: sizes of the classes in each, and how many are shared."""
    labels, everything = np.asarray(labels), np.concatenate(found)
    counts = [np.bincount(labels[part], minlength=len(COUNTS)).tolist() for part in found]
    return counts, len(everything) - len(set(everything.tolist()))


@pytest.mark.weight(4)
@pytest.mark.parametrize("kind", ["array", "list", "tensor"])
@pytest.mark.shows("split_takes_the_same_from_each_class", "split_parts_have_no_image_in_common")
@pytest.mark.explains("split_has_its_sizes", "split_depends_on_its_seed")
def test_split_is_exact_in_every_class(student, reference, kind):
    """Each part has exactly per_class images of every class, and no image is in two parts."""
    labels = labels_of(student)
    given = {"array": labels, "list": labels.tolist(), "tensor": torch.from_numpy(labels)}[kind]
    found = split(student, reference, given, SIZES, 5)
    if any(len(part) and not (part.min() >= 0 and part.max() < len(labels)) for part in found):
        raise Mismatch("The parts hold numbers that are not indices of the labels.")
    counts, shared = described(labels, found)
    wanted = [[size] * len(COUNTS) for size in SIZES]
    if shared and counts == wanted:
        raise reference.named("split_parts_overlap")
    if counts == wanted:
        return

    def result(made):
        return described(labels, [np.asarray(part) for part in made(labels, SIZES, 5)])

    reference.oracle.name(reference, "stratified_split", (counts, shared), result, lambda a, b: a == b)
    totals = [sum(each) for each in counts]
    if totals == [size * len(COUNTS) for size in SIZES] and not shared:
        raise reference.named("split_not_by_class")
    part = next(number for number, each in enumerate(counts) if each != wanted[number])
    raise Mismatch(
        f"Of classes with {', '.join(map(str, COUNTS))} images, part {part} gets "
        f"{', '.join(map(str, counts[part]))}; with per_class={SIZES} it should get {SIZES[part]} of each.",
        hint="What a class has beyond that is left out.",
    )


@pytest.mark.weight(2)
@pytest.mark.because("split_is_exact_in_every_class")
def test_split_may_use_all_images(student, reference):
    """A class that has exactly as many images as are needed is used up."""
    labels = np.repeat(np.arange(3), 8)
    found = split(student, reference, labels, (5, 3), 1)
    if sorted(np.concatenate(found).tolist()) != list(range(24)):
        raise Mismatch("With per_class=(5, 3) and 8 images of each class, every image should be in one part.")


@pytest.mark.weight(2)
@pytest.mark.because("split_is_exact_in_every_class")
@pytest.mark.shows("split_depends_on_its_seed")
def test_split_follows_its_seed(student, reference):
    """The same seed gives the same parts, and another seed gives others."""
    labels = labels_of(student)
    seed = student.next_seed() % 2**31
    first, again, other = (split(student, reference, labels, SIZES, each) for each in (seed, seed, seed + 1))

    def same(one, two):
        return all(set(a.tolist()) == set(b.tolist()) for a, b in zip(one, two, strict=True))

    if not same(first, again):
        raise reference.named("split_without_seed")
    if same(first, other):
        raise reference.named("split_ignores_its_seed")


@pytest.mark.weight(2)
@pytest.mark.because("split_is_exact_in_every_class")
@pytest.mark.shows("split_raises_for_too_few")
def test_split_refuses_too_few(student, reference):
    """A class that has too few images raises ValueError."""
    split(student, reference, np.repeat(np.arange(3), (9, 8, 9)), (5, 3), 1)  # there are enough here
    labels = np.repeat(np.arange(3), (9, 7, 9))
    try:
        student.call("stratified_split", labels, (5, 3), 1)
    except Mismatch as error:
        if "ValueError" in error.concerns or "ValueError" in error.message:
            return
        raise Mismatch(
            "For a class with too few images, an error other than ValueError is raised."
        ) from error
    raise reference.named("split_without_an_error")
