"""The split: which images train, and that identical ones stay on one side."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.kit.splits import LabeledImages, split_images, stratified_split


def names_of(*sizes: int) -> dict[str, list[str]]:
    return {f"class{c}": [f"class{c}/{i}.png" for i in range(size)] for c, size in enumerate(sizes)}


def test_the_split_is_the_one_that_students_are_told_to_make():
    names = names_of(10, 30)
    expected_train, expected_test = [], []
    for members in names.values():
        shuffled = sorted(members)
        random.Random(42).shuffle(shuffled)
        cut = int(0.7 * len(shuffled))
        expected_train += shuffled[:cut]
        expected_test += shuffled[cut:]
    assert stratified_split(names, seed=42) == (expected_train, expected_test)


def test_the_order_in_which_names_are_listed_does_not_matter():
    names = names_of(20)
    backward = {label: members[::-1] for label, members in names.items()}
    assert stratified_split(names, seed=1) == stratified_split(backward, seed=1)


def test_another_seed_gives_another_split():
    names = names_of(40)
    assert set(stratified_split(names, seed=1)[0]) != set(stratified_split(names, seed=2)[0])


def test_one_seed_for_all_classes_repeats_its_pattern_and_one_for_each_does_not():
    """The first is the students' split; the hidden one would be known from one class alone."""
    names = names_of(30, 30)

    def pattern(train, label):
        return {name.split("/")[1] for name in train if name.startswith(label)}

    same, _ = stratified_split(names, seed=42)
    assert pattern(same, "class0") == pattern(same, "class1")
    own, _ = stratified_split(names, seed={"class0": 5, "class1": 6}.__getitem__)
    assert pattern(own, "class0") != pattern(own, "class1")
    for label, seed in (("class0", 5), ("class1", 6)):
        assert pattern(own, label) == pattern(stratified_split(names, seed=seed)[0], label)


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(2, 30), min_size=1, max_size=4),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**64),
)
def test_every_image_is_on_one_side_and_every_class_on_both(sizes, share, seed):
    names = names_of(*sizes)
    train, test = stratified_split(names, seed=seed, train_share=share)
    assert sorted(train + test) == sorted(name for members in names.values() for name in members)
    for label in names:
        assert any(name.startswith(label) for name in train)
        assert any(name.startswith(label) for name in test)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 70])
def test_a_share_that_leaves_a_side_empty_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        stratified_split(names_of(4), seed=0, train_share=share)


@given(seed=st.integers(0, 10_000), pairs=st.integers(1, 8))
@settings(deadline=None)
def test_identical_images_follow_the_first_of_them_even_across_classes(seed, pairs):
    names = names_of(12, 12)
    twin = {f"class1/{i}.png": f"class0/{i}.png" for i in range(pairs)}
    train, test = stratified_split(names, seed=seed, same_as=lambda name: twin.get(name, name))
    for second, first in twin.items():
        assert (second in train) == (first in train)
    assert len(train) + len(test) == 24
    own_train, _ = stratified_split({"class0": names["class0"]}, seed=seed)
    assert [name for name in train if name.startswith("class0")] == own_train


def test_split_images_keeps_images_labels_and_names_together():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3, dtype=np.int64), 10)
    images = rng.integers(0, 256, (30, 5, 4), dtype=np.uint8)
    images[:, 0, 0] = np.arange(30)  # each image carries its number
    names = tuple(f"c{label}/{row:02d}.png" for row, label in enumerate(labels))
    splits = split_images("toy", ("c0", "c1", "c2"), LabeledImages(names, labels, images), seed=3)
    assert splits.train_images.shape == (21, 5, 4) and splits.test_images.shape == (9, 5, 4)
    for side in ("train", "test"):
        side_images, side_labels = getattr(splits, f"{side}_images"), getattr(splits, f"{side}_labels")
        for image, label, name in zip(
            side_images, side_labels, getattr(splits, f"{side}_names"), strict=True
        ):
            assert name == names[image[0, 0]]
            assert label == labels[image[0, 0]]


def test_split_images_keeps_identical_pixels_on_one_side():
    for seed in range(20):
        images = np.arange(20, dtype=np.uint8).reshape(20, 1, 1).repeat(4, axis=1)
        images[13] = images[2]
        names = tuple(f"c{row // 10}/{row:02d}.png" for row in range(20))
        labels = np.repeat(np.arange(2, dtype=np.int64), 10)
        splits = split_images("toy", ("c0", "c1"), LabeledImages(names, labels, images), seed=seed)
        assert ("c0/02.png" in splits.train_names) == ("c1/13.png" in splits.train_names)
