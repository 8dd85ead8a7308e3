"""The zip that the course hands out, and the split that students make of it."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from grader.course.student_data import student_split, write_student_data
from grader.domain.assignment import DataUse
from grader.domain.errors import UsageError
from grader.kit.splits import Splits

MADE = """
import numpy as np
from grader.kit.image_folders import folder_images
from grader.kit.splits import LabeledImages, split_images

NAME, TITLE, CLASSES = "made", "Made", ("cat", "dog")

def load(source, *, seed, train_share=0.7, cache=None):
    if source is not None:
        found = folder_images(source, NAME, CLASSES)
        return split_images(NAME, CLASSES, found, seed=seed, train_share=train_share)
    names = tuple(f"{label}/{number}.jpg" for label in CLASSES for number in range(10))
    images = np.random.default_rng(seed).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    data = LabeledImages(names, np.repeat(np.arange(2), 10), images)
    return split_images(NAME, CLASSES, data, seed=seed, train_share=train_share)
"""
REAL = """
from grader.domain.errors import UsageError

NAME, TITLE, CLASSES = "real", "Real", ("cow", "hen")

def load(source, *, seed, train_share=0.7, cache=None):
    raise UsageError(f"{source} is asked as the whole data set")
"""


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two data sets; decoded images are kept beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "datasets"
    folder.mkdir()
    (folder / "made.py").write_text(MADE, encoding="utf-8")
    (folder / "real.py").write_text(REAL, encoding="utf-8")
    return folder


def the_same(one: Splits, other: Splits) -> None:
    """Two splits hold the same images with the same labels in the same order."""
    assert one.classes == other.classes
    for part in ("train", "test"):
        np.testing.assert_array_equal(getattr(one, f"{part}_labels"), getattr(other, f"{part}_labels"))
        np.testing.assert_array_equal(getattr(one, f"{part}_images"), getattr(other, f"{part}_images"))


def test_a_zip_of_classes_is_split_by_whoever_reads_it(datasets: Path, tmp_path: Path) -> None:
    use = DataUse(real="made", synthetic="made")
    first, second = tmp_path / "out" / "dataset.zip", tmp_path / "again.zip"
    written = write_student_data(datasets, use, None, first)
    write_student_data(datasets, use, None, second)
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in first.parent.iterdir()] == ["dataset.zip"]
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
        picture = np.asarray(Image.open(io.BytesIO(archive.read("dog/3.png"))))
    assert names == sorted(f"{label}/{number}.png" for label in ("cat", "dog") for number in range(10))
    row = written.train_names.index("dog/3.jpg")
    np.testing.assert_array_equal(picture, written.train_images[row])
    the_same(student_split(datasets, use, first), written)


def test_a_zip_of_parts_is_the_split(datasets: Path, tmp_path: Path) -> None:
    """Also where the images of another data set are handed out than those that are graded on."""
    use = DataUse(real="real", synthetic="made", in_parts=True, train_per_class=5, test_per_class=2)
    path = tmp_path / "dataset.zip"
    written = write_student_data(datasets, use, None, path)
    assert np.bincount(written.train_labels).tolist() == [5, 5]
    assert np.bincount(written.test_labels).tolist() == [2, 2]
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "unpacked")
    assert names[0] == "train/cat/00001.png" and names[-1] == "test/dog/00002.png" and len(names) == 14
    the_same(student_split(datasets, use, path), written)
    the_same(student_split(datasets, use, tmp_path / "unpacked"), written)


def test_more_images_than_are_taken_are_the_whole_data_set(datasets: Path, tmp_path: Path) -> None:
    """Of these the data set's file knows the order, and so which are the first."""
    many = DataUse(real="real", synthetic="made", in_parts=True)
    path = tmp_path / "dataset.zip"
    write_student_data(datasets, many, None, path)
    few = DataUse(real="real", synthetic="made", in_parts=True, train_per_class=3)
    with pytest.raises(UsageError, match="is asked as the whole data set"):
        student_split(datasets, few, path)


def test_what_is_left_out_of_a_class_are_its_last_images(datasets: Path) -> None:
    whole = student_split(datasets, DataUse(real="made", synthetic="made"), None)
    few = student_split(datasets, DataUse(real="made", synthetic="made", train_per_class=4), None)
    assert few.test_names == whole.test_names
    assert few.train_names == (*whole.train_names[:4], *whole.train_names[7:11])


def test_images_that_served_for_something_else_are_not_handed_out(datasets: Path) -> None:
    whole = student_split(datasets, DataUse(real="made", synthetic="made"), None)
    rest = student_split(datasets, DataUse(real="made", synthetic="made", without=("cat/[0-4].jpg",)), None)
    gone = {f"cat/{number}.jpg" for number in range(5)}
    assert [*rest.train_names, *rest.test_names] == [
        name for name in (*whole.train_names, *whole.test_names) if name not in gone
    ]


def test_a_zip_that_cannot_be_written(datasets: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot be written"):
        write_student_data(
            datasets, DataUse(real="made", synthetic="made"), None, tmp_path / "file" / "dataset.zip"
        )
