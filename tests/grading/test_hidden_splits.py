"""The hidden split of each attempt: secret, another for each class label and attempt, of the same images."""

import gc
import hashlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.course.assignment_file import read_assignment
from grader.course.locate import Course, located_course
from grader.domain.assignment import DataUse
from grader.domain.evidence import Evidence
from grader.grading.hidden_splits import HiddenSplits, SplitKey, hidden_data
from grader.kit.splits import Splits

CLASSES = ("crazing", "inclusion", "patches")
PER_CLASS = 40
KEY = SplitKey("secret", "vit_defects", "salt")
USE = DataUse(real="steel", synthetic="steel", train_share=0.7)
FOUND = Evidence("400101204", "vit_defects", "ab12", datetime(2026, 1, 2, tzinfo=UTC))


def loaded(per_class: int = PER_CLASS, twins: int = 0) -> Splits:
    """A data set as its file gives it: each image carries its number; some show what an earlier one shows."""
    count = per_class * len(CLASSES)
    images = np.arange(count, dtype=np.uint16).view(np.uint8).reshape(count, 1, 2)
    for twin in range(twins):
        images[per_class + twin] = images[twin]
    labels = np.repeat(np.arange(len(CLASSES)), per_class).astype(np.int64)
    names = tuple(f"{CLASSES[label]}/{row % per_class:03}.png" for row, label in enumerate(labels))
    train = np.arange(count) % 2 == 0
    return Splits(
        "toy",
        CLASSES,
        images[train],
        labels[train],
        tuple(np.array(names)[train].tolist()),
        images[~train],
        labels[~train],
        tuple(np.array(names)[~train].tolist()),
    )


def made(key: SplitKey = KEY, **more: Any) -> HiddenSplits:
    """The splits of that data set."""
    return HiddenSplits(loaded(**more), key, USE)


def test_each_side_holds_at_most_what_the_assignment_takes() -> None:
    """The first of each class: the hidden images of a smaller homework are some of the larger one's."""
    whole = made().of(1)
    few = HiddenSplits(loaded(), KEY, replace(USE, train_per_class=3, test_per_class=2)).of(1)
    for label in range(len(whole.classes)):
        for side, most in (("train", 3), ("test", 2)):
            every = np.flatnonzero(getattr(whole, f"{side}_labels") == label)
            kept = np.flatnonzero(getattr(few, f"{side}_labels") == label)
            assert len(kept) == most < len(every)
            names, kept_names = getattr(whole, f"{side}_names"), getattr(few, f"{side}_names")
            assert [kept_names[row] for row in kept] == [names[row] for row in every[:most]]


def test_images_that_served_for_something_else_are_on_no_side() -> None:
    """A model that was pretrained on them would know them; all others stay, as many as there were."""
    some = HiddenSplits(loaded(), KEY, replace(USE, without=("*/00?.png", "patches/01?.png"))).of(1)
    left = {*some.train_names, *some.test_names}
    assert left == {
        name
        for name in (*loaded().train_names, *loaded().test_names)
        if "/00" not in name and not name.startswith("patches/01")
    }
    few = HiddenSplits(loaded(), KEY, replace(USE, without=("*/00?.png",), train_per_class=20)).of(1)
    assert np.bincount(few.train_labels).tolist() == [20, 20, 20]


def test_what_students_were_given_to_train_on_is_known_where_parts_are_handed_out() -> None:
    """Weights that are handed in may know those images by heart."""
    assert made().of(1).withheld is None
    split = HiddenSplits(loaded(), KEY, replace(USE, in_parts=True)).of(1)
    given = set(loaded().train_names)
    assert split.withheld is not None and 0 < split.withheld.sum() < len(split.withheld)
    assert [name not in given for name in split.test_names] == split.withheld.tolist()


def pattern(split: Splits, label: str) -> frozenset[str]:
    """Which of a class's images train, by what follows the class in their names."""
    return frozenset(name.split("/")[1] for name in split.train_names if name.startswith(label))


def test_each_class_and_each_attempt_has_a_pattern_of_its_own() -> None:
    """What is known of one class, or of one attempt, says nothing of another."""
    splits = made()
    patterns = {
        (attempt, label): pattern(splits.of(attempt), label) for attempt in (1, 2, 3) for label in CLASSES
    }
    assert len(set(patterns.values())) == len(patterns)
    # two shares of 0.7 that have nothing to do with each other have 0.49 in common
    for (attempt, label), own in patterns.items():
        for (other_attempt, other_label), other in patterns.items():
            if (attempt, label) < (other_attempt, other_label):
                assert 0.3 * PER_CLASS < len(own & other) < 0.68 * PER_CLASS


@pytest.mark.parametrize(
    "key",
    [
        replace(KEY, secret="another"),
        replace(KEY, assignment_id="another"),
        replace(KEY, salt="another"),
    ],
    ids=["secret", "assignment", "salt"],
)
def test_the_secret_the_assignment_and_the_salt_decide_it(key: SplitKey) -> None:
    """And nothing else: the same key gives the same split for everybody."""
    assert made(key).of(1).test_names != made().of(1).test_names
    first, second = made().of(1), made().of(1)
    assert first.test_names == second.test_names and (first.test_images == second.test_images).all()


def test_it_is_no_split_that_a_student_could_shuffle() -> None:
    """With the students' seed, or one that the secret alone gives, one pattern for all classes comes out."""
    course = Course(Path(), "t", "secret")
    for seed in (42, course.split_seed):
        names = sorted(f"{number:03}.png" for number in range(PER_CLASS))
        random.Random(seed).shuffle(names)
        known = frozenset(names[: round(0.7 * PER_CLASS)])
        assert known not in {pattern(made().of(1), label) for label in CLASSES}
    assert "secret" not in repr(KEY) and "'salt'" not in repr(KEY)


def test_a_split_has_every_image_once_with_its_label_and_its_pixels() -> None:
    base, split = loaded(), made().of(2)
    known = {
        name: (label, image.tobytes())
        for side in ("train", "test")
        for name, label, image in zip(
            getattr(base, f"{side}_names"),
            getattr(base, f"{side}_labels"),
            getattr(base, f"{side}_images"),
            strict=True,
        )
    }
    assert sorted((*split.train_names, *split.test_names)) == sorted(known)
    assert len(split.train_names) == round(0.7 * PER_CLASS) * len(CLASSES) == made().training_size
    for side in ("train", "test"):
        for index, name in enumerate(getattr(split, f"{side}_names")):
            label, image = known[name]
            assert getattr(split, f"{side}_labels")[index] == label
            assert getattr(split, f"{side}_images")[index].tobytes() == image


def test_identical_images_are_on_one_side_in_every_attempt() -> None:
    """Also those of two classes."""
    splits = made(twins=15)
    for attempt in range(1, 8):
        split = splits.of(attempt)
        shown = {image.tobytes() for image in split.train_images}
        assert not shown & {image.tobytes() for image in split.test_images}


def test_a_split_is_made_once_while_it_is_used_and_let_go_afterwards() -> None:
    """From any number of threads: a class meets few attempts at once, and pixels are large."""
    splits = made()
    with ThreadPoolExecutor(8) as threads:
        every = list(threads.map(splits.of, [1] * 40))
    assert all(one is every[0] for one in every)
    held = splits.of(2)
    first = splits.of(1)
    assert splits.of(2) is held and splits.of(1) is first
    del every, first, held
    splits.of(3)
    gc.collect()
    assert list(splits._alive) == [3]


# --- what makes a submission be trained again ------------------------------------------------------------


def old_digest(splits: Splits) -> str:
    """What graders with one split for all wrote down."""
    whole = hashlib.sha256()
    for text in (splits.name, *splits.classes, *splits.train_names, "", *splits.test_names):
        whole.update(text.encode() + b"\0")
    for array in (splits.train_images, splits.train_labels, splits.test_images, splits.test_labels):
        whole.update(str(array.shape).encode())
        whole.update(np.ascontiguousarray(array).data)
    return whole.hexdigest()


def test_what_an_older_grader_measured_stays_valid_as_long_as_its_images_do() -> None:
    """It wrote no number of an attempt."""
    old = replace(FOUND, data_digest=old_digest(loaded()))
    assert made().are_those_of(old)
    assert not made(twins=1).are_those_of(old)
    assert not made().are_those_of(replace(old, attempt=1))
    assert not made().are_those_of(replace(FOUND, data_digest=""))  # only checked


def test_the_digest_tells_the_attempt_and_every_change_of_the_images() -> None:
    """Of a label, a pixel, a name, the data set's name, or what decides the split."""
    base = loaded()
    brighter = base.test_images.copy()
    brighter[3, 0, 0] += 1
    changed = [
        replace(base, name="other"),
        replace(base, train_labels=np.roll(base.train_labels, 1)),
        replace(base, test_images=brighter),
        replace(base, test_names=("crazing/new.png", *base.test_names[1:])),
    ]
    every = [HiddenSplits(one, KEY, USE) for one in (base, *changed)]
    every += [made(replace(KEY, salt="another")), HiddenSplits(base, KEY, replace(USE, train_share=0.6))]
    digests = [one.digest(attempt) for one in every for attempt in (1, 2)]
    assert len(set(digests)) == len(digests)
    mine = replace(FOUND, attempt=2, data_digest=made().digest(2))
    assert [one.are_those_of(mine) for one in every] == [True] + [False] * 6


# --- the course's own data ---------------------------------------------------------------------------------


@pytest.fixture
def counted_course(
    course_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Course, Callable[[], int]]:
    """(a course whose data set counts how often its images are made, how often that was)."""
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "course.toml").write_text('title = "Own"\nsecret = "s"\n', encoding="utf-8")
    (tmp_path / "reference").symlink_to(course_root / "reference")
    (tmp_path / "datasets").mkdir()
    told = tmp_path / "made.txt"
    text = f"""
import numpy as np
from pathlib import Path
from grader.kit.splits import LabeledImages, split_images
NAME, TITLE = "synthetic_steel", "Counted"
CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")
def load(source, *, seed, train_share=0.7, cache=None):
    with Path({str(told)!r}).open("a") as file:
        file.write("made\\n")
    labels = np.repeat(np.arange(6), 10).astype(np.int64)
    images = np.random.default_rng(seed).integers(0, 256, (60, 4, 4), dtype=np.uint8)
    names = tuple(f"{{CLASSES[label]}}/{{row}}.png" for row, label in enumerate(labels))
    data = LabeledImages(names, labels, images)
    return split_images(NAME, CLASSES, data, seed=seed, train_share=train_share)
"""
    (tmp_path / "datasets" / "synthetic_steel.py").write_text(text, encoding="utf-8")
    return located_course(tmp_path, environment={}), lambda: len(told.read_text("utf-8").splitlines())


def test_images_are_decoded_once_for_all_attempts(
    counted_course: tuple[Course, Callable[[], int]],
) -> None:
    course, count = counted_course
    assignment = read_assignment(course.reference("vit_defects"))
    splits = hidden_data(course, assignment, "synthetic", lambda: "salt")
    for attempt in (1, 2, 3, 1):
        assert len(splits.of(attempt).test_names) == 18
        assert splits.digest(attempt)
    assert count() == 1
    assert hidden_data(course, assignment, "synthetic", lambda: "salt").digest(3) == splits.digest(3)
    other = hidden_data(course, assignment, "synthetic", lambda: "another class's")
    assert other.of(1).test_names != splits.of(1).test_names


def test_a_salt_is_not_asked_for_before_the_images_could_be_read(course_root: Path, tmp_path: Path) -> None:
    """Else a mistyped --data would leave a gradebook behind."""
    course = located_course(course_root, environment={})
    assignment = read_assignment(course.reference("vit_defects"))
    asked: list[str] = []
    with pytest.raises(Exception, match="does not exist"):
        hidden_data(course, assignment, str(tmp_path / "absent.zip"), lambda: asked.append("") or "")
    assert asked == []
