"""What a worker is not told of the images and classes, and that its answers are understood all the same."""

from dataclasses import replace

import numpy as np
import pytest

from grader.domain.analyzed_program import Place, Program, Recipe, Statement
from grader.training import Job
from grader.training.blinding import Blinding, mentions, neutral_names

CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")


def program_of(*texts: str, **recipe: str) -> Program:
    """A program of these statements."""
    place = Place("homework.py", 1)
    statements = tuple(Statement(text, place, (), "definition") for text in texts)
    return Program("homework.py", statements, recipe=Recipe(**recipe))


@pytest.mark.parametrize(
    "text",
    [
        'SHORT = {"crazing": "Cr"}',
        "names.index('rolled-in_scale')",
        'PITTED = [name for name in names if name.startswith("pitted")]',
        'CLASSES = "crazing,inclusion,patches".split(",")',
        "class Defect(Enum):\n    crazing = 0\n    inclusion = 1",
        'title = "Scratches"',
    ],
)
def test_a_program_that_names_real_classes_gets_their_names(text: str) -> None:
    assert mentions(program_of("import torch", text), CLASSES)
    assert mentions(program_of("import torch", model=text.split(" = ")[-1]), CLASSES) or "\n" in text


@pytest.mark.parametrize(
    "text",
    [
        "patches = self.to_patches(images)",
        'raise ValueError(f"{size} pixels cannot be cut into patches of {patch}")',
        'plt.title("Confusion matrix")',
        "for name in class_names: print(name)",
        "x = 'in'",
    ],
)
def test_words_that_any_program_has_are_no_names_of_classes(text: str) -> None:
    """An image is cut into patches; that is no reason to tell the classes."""
    assert not mentions(program_of("import torch", text), CLASSES)


def test_classes_are_neutral_unless_the_program_names_them(job: Job) -> None:
    hidden = replace(job, order_seed=4)
    assert Blinding(hidden, "training", numbers=True).classes == ("class_a", "class_b", "class_c")
    named = replace(hidden, program=program_of('LOW = class_names.index("low")'))
    assert sorted(Blinding(named, "training", numbers=True).classes) == ["high", "low", "middle"]
    assert Blinding(named, "checkpoint", numbers=False).classes == job.splits.classes
    assert Blinding(job, "training", numbers=True).classes == job.splits.classes, "one's own work"


def test_neutral_names_are_in_alphabetical_order_and_different() -> None:
    """As those of folders are, whatever their number."""
    for count in (1, 6, 26, 27, 100, 1000):
        names = neutral_names(count)
        assert len(set(names)) == count and list(names) == sorted(names)


def test_images_are_others_in_training_and_nearly_the_same_for_weights(job: Job) -> None:
    """Submitted weights were made for the images as they are published."""
    noise = np.random.default_rng(1).integers(20, 230, job.splits.test_images.shape).astype(np.uint8)
    hidden = replace(job, splits=replace(job.splits, test_images=noise, train_images=noise), order_seed=4)
    training = Blinding(hidden, "training", numbers=True)
    for sent, ours in ((training.train_images, noise), (training.test_images, noise[training.order])):
        assert np.abs(sent.astype(int) - ours).mean() > 20
    weights = Blinding(hidden, "checkpoint", numbers=False)
    difference = weights.test_images.astype(int) - noise[weights.order]
    assert set(np.unique(difference)) == {-1, 0, 1}
    assert all(each.any() for each in difference)


def test_images_of_a_studys_rows_are_nearly_those_that_students_have(job: Job) -> None:
    """In an order and with numbers of classes that nobody knows."""
    row = Blinding(replace(job, order_seed=4, perturbs=False), "training", numbers=True)
    trained = Blinding(replace(job, order_seed=4), "training", numbers=True)
    assert np.abs(row.train_images.astype(int) - job.splits.train_images).max() == 1
    assert np.array_equal(row.train_labels, trained.train_labels) and np.array_equal(row.order, trained.order)


def test_the_same_seed_gives_the_same_images_and_another_one_others(job: Job) -> None:
    """The images of a submission may be needed in two workers; no two submissions have the same."""
    one, again, other = (
        Blinding(replace(job, order_seed=seed), "training", numbers=True) for seed in (4, 4, 5)
    )
    assert (one.test_images == again.test_images).all()
    assert (one.train_images != other.train_images).any()
