"""A data set file of the course: loaded by path, and held to its contract."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grader.course.dataset_file import dataset_file, load_dataset
from grader.domain.errors import CourseError, UsageError

GOOD = """
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from grader.kit import Splits

NAME = "toy"
TITLE = "Toy"
CLASSES = ("a", "b")

@dataclass(frozen=True)
class Side:
    images: "np.ndarray"
    labels: "np.ndarray"

def load(source, *, seed, train_share=0.7, cache=None):
    side = Side(np.full((4, 6, 5), seed % 256, np.uint8), np.array([0, 0, 1, 1], np.int64))
    test = (side.images[:2], side.labels[:2], ("x", "y"))
    names = tuple(f"{train_share} {source} {cache} {i}" for i in range(4))
    return Splits(NAME, CLASSES, side.images, side.labels, names, *test)
"""


@pytest.fixture
def datasets(tmp_path):
    folder = tmp_path / "datasets"
    folder.mkdir()
    return folder


def written(datasets: Path, text: str, name: str = "toy") -> Path:
    (datasets / f"{name}.py").write_text(text, encoding="utf-8")
    return datasets


def complaint(datasets: Path, name: str = "toy") -> str:
    with pytest.raises(CourseError) as caught:
        load_dataset(datasets, name, None, seed=0)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".") and "Traceback" not in message
    return message


def test_arguments_arrive_and_splits_come_back(datasets, tmp_path):
    splits = load_dataset(
        written(datasets, GOOD), "toy", tmp_path / "x.zip", seed=9, train_share=0.5, cache=tmp_path / "c"
    )
    assert splits.classes == ("a", "b") and (splits.train_images == 9).all()
    assert splits.train_names[0] == f"0.5 {tmp_path / 'x.zip'} {tmp_path / 'c'} 0"


def test_two_courses_do_not_share_a_module(tmp_path):
    for number in (1, 2):
        folder = tmp_path / str(number) / "datasets"
        folder.mkdir(parents=True)
        written(folder, GOOD.replace("seed % 256", str(number)))
    before = set(sys.modules)
    values = [
        load_dataset(tmp_path / n / "datasets", "toy", None, seed=0).train_images[0, 0, 0] for n in "12"
    ]
    assert values == [1, 2]
    assert "datasets" not in set(sys.modules) - before


def test_declarations(datasets):
    file = dataset_file(written(datasets, GOOD), "toy")
    assert (file.name, file.title, file.classes) == ("toy", "Toy", ("a", "b"))


def test_an_absent_file_names_those_that_are_there(datasets):
    written(datasets, GOOD)
    assert "the course has toy" in complaint(datasets, "neu")
    assert "holds no data set files" in complaint(datasets / "nowhere", "neu")


@pytest.mark.parametrize("name", ["../toy", "toy/..", "", "Toy.py", "/etc/passwd"])
def test_a_name_never_leaves_the_folder(datasets, name):
    written(datasets, GOOD)
    assert "There is no data set" in complaint(datasets, name)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("def load(:\n", "line 1 is not Python"),
        ("import not_installed_anywhere\n", "importing it raised ModuleNotFoundError"),
        (GOOD.replace('NAME = "toy"', 'NAME = "other"'), "NAME is 'other'"),
        (GOOD.replace('TITLE = "Toy"', ""), "TITLE is missing"),
        (GOOD.replace('("a", "b")', '["a", "b"]', 1), "CLASSES must be a tuple"),
        (GOOD.replace('("a", "b")', '("a", "b", "a")', 1), "names a class twice"),
        (GOOD.replace("def load", "def unload"), "load is missing"),
        (
            GOOD.replace("    side =", "    raise ValueError('no luck\\nat all')\n    side ="),
            "ValueError: no luck at all",
        ),
        (GOOD.replace("return Splits", "return print"), "a NoneType instead of Splits"),
    ],
)
def test_a_broken_file_is_the_courses_fault(datasets, text, part, capsys):
    message = complaint(written(datasets, text))
    assert message.startswith("datasets/toy.py: ")
    assert part in message


def test_errors_of_the_source_stay_with_the_operator(datasets):
    text = "from grader.domain.errors import UsageError\n" + GOOD.replace(
        "    side =", "    raise UsageError('x.zip is damaged. Get it again.')\n    side ="
    )
    with pytest.raises(UsageError, match=r"x\.zip is damaged"):
        load_dataset(written(datasets, text), "toy", None, seed=0)


@pytest.fixture
def good(datasets):
    return load_dataset(written(datasets, GOOD), "toy", None, seed=0)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda s: {"name": "other"}, "the name 'other'"),
        (lambda s: {"classes": ("b", "a")}, "other classes than CLASSES"),
        (
            lambda s: {"train_images": s.train_images.astype(np.float32)},
            "training images that are not a uint8",
        ),
        (lambda s: {"test_images": s.test_images.tolist()}, "test images that are not a uint8"),
        (lambda s: {"train_images": s.train_images[:, None]}, "shape (4, 1, 6, 5)"),
        (lambda s: {"train_images": s.train_images[:, :0]}, "shape (4, 0, 5)"),
        (lambda s: {"test_images": s.test_images[:0]}, "test images of shape (0, 6, 5)"),
        (lambda s: {"test_images": s.test_images[:, :4]}, "different shapes"),
        (
            lambda s: {"train_labels": s.train_labels.astype(np.int32)},
            "training labels that are not an int64",
        ),
        (lambda s: {"train_labels": s.train_labels[:3]}, "different counts: 4, 3, 4"),
        (lambda s: {"test_names": ("x",)}, "different counts: 2, 2, 1"),
        (lambda s: {"test_names": ["x", "y"]}, "not a tuple of text"),
        (lambda s: {"train_labels": s.train_labels + 1}, "labels outside 0 to 1"),
        (lambda s: {"test_labels": s.test_labels - 1}, "labels outside 0 to 1"),
        (lambda s: {"train_labels": s.train_labels * 0}, "no training images of class 'b'"),
        (lambda s: {"test_names": ("x", s.train_names[0])}, "an image name twice"),
    ],
)
def test_malformed_splits_are_refused(datasets, good, change, part):
    wrong = replace(good, **change(good))
    (datasets / "toy.py").write_text(GOOD + "\nGIVEN = []\ndef load(*a, **k): return GIVEN[0]\n")
    file = dataset_file(datasets, "toy")
    file.load.__globals__["GIVEN"].append(wrong)
    import grader.course.dataset_file as module

    assert part in module._malformation(file.load(None), file)


def test_the_courses_own_files_keep_the_contract():
    datasets = Path(__file__).parents[2] / "datasets"
    titles = {path.stem: dataset_file(datasets, path.stem).title for path in datasets.glob("*.py")}
    assert set(titles) >= {"neu_cls", "synthetic_steel"}
