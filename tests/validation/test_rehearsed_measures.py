"""What an assignment's data and measures lack is told by `grader validate`, before anybody is graded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, Kind
from grader.course.locate import located_course
from grader.domain.evidence import Training, TrainingOutcome
from grader.validation import rehearsed_measures
from grader.validation.rehearsed_measures import measure_faults
from grader.validation.trials import Trial

ARRAYS = """
[data]
kind = "arrays"
real = "points"
synthetic = "points"
[[component]]
name = "Doubler"
kind = "class"
signature = "dim"
[[component]]
name = "fit"
kind = "function"
signature = "model, batches"
[[measure]]
id = "error"
function = "squared"
better = "lower"
[measure.call]
model = "Doubler"
arguments = { dim = 1 }
function = "fit"
given = { model = "{model}", batches = "{batches}" }
[[rubric]]
id = "parts"
title = "Parts"
points = 4
components = { Doubler = 4, fit = 0 }
[[rubric]]
id = "measured"
title = "Measured"
points = 4
measured = "error"
threshold = 1.0
breakpoints = [{ at = 1.0, points = 4 }, { at = 2.0, points = 0 }]
"""
POINTS = """
import numpy as np
from grader.kit import Examples
NAME, TITLE = "points", "Points"

def load(source, *, seed, train_share=0.7, cache=None):
    x = np.random.default_rng(seed).normal(size=(400, 1)).astype(np.float32)
    return Examples(NAME, x[:200], 2 * x[:200], x[200:], 2 * x[200:])
"""
MEASURES = "def squared(outputs, targets):\n    return ((outputs - targets) ** 2).mean()\n"
SOURCE = "def fit(model, batches):\n    batches.step()\n"
COMPLETED = Training(TrainingOutcome.COMPLETED, value=0.5)
Faults = Callable[..., tuple[str, ...]]


@pytest.fixture
def faults(tiny_course: Path, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """What is told, with files changed and trainings that end as they are told to."""
    folder = tiny_course / "reference" / "tiny"
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    (folder / "assignment.toml").write_text(text[: text.index("[data]")] + ARRAYS, encoding="utf-8")
    reference = Trial(HomeworkVersion(Kind.REFERENCE, "reference", "solution.py", SOURCE))

    def found(
        *endings: Training, data: str = POINTS, measures: str = MEASURES, seen: list[Any] | None = None
    ) -> tuple[str, ...]:
        (tiny_course / "datasets" / "points.py").write_text(data, encoding="utf-8")
        (folder / "checks" / "measures.py").write_text(measures, encoding="utf-8")
        left = list(endings)

        def training(*arguments: Any) -> Training:
            if seen is not None:
                seen.append(arguments)
            return left.pop(0)

        monkeypatch.setattr(rehearsed_measures, "version_training", training)
        monkeypatch.setattr(rehearsed_measures, "host_of_workers", lambda *_: _NoHost())
        return measure_faults(located_course(tiny_course), read_assignment(folder), reference)

    return found


class _NoHost:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


def test_a_reference_that_can_be_measured_is_nothing_to_speak_of(faults: Faults) -> None:
    """It is trained on a few examples, within a short time."""
    seen: list[Any] = []
    assert faults(COMPLETED, seen=seen) == ()
    [(*_, examples, _, limits)] = seen
    assert len(examples.train_inputs) == len(examples.test_targets) == 64
    assert limits.training_seconds == 30
    assert faults(Training(TrainingOutcome.BUDGET)) == (), "it may only be long"


def test_what_fails_on_few_examples_is_tried_on_all(faults: Faults) -> None:
    """Few may be too few; what fails on all of them fails for every student."""
    failed = Training(TrainingOutcome.FAILED, reason="It raised.", where="homework.py:2")
    seen: list[Any] = []
    assert faults(failed, COMPLETED, seen=seen) == ()
    assert [len(arguments[3].train_inputs) for arguments in seen] == [64, 200]
    assert faults(failed, failed) == (
        "[[measure]] 'error': the reference is not measured: It raised. It was at `batches.step()`.",
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("default_rng(seed)", "default_rng(7)", "load gives the same hidden examples for every seed"),
        ("default_rng(seed)", "default_rng()", "load gives other examples each time for one seed"),
        ("(400, 1)", "(400 / 0, 1)", "datasets/points.py: load raised ZeroDivisionError"),
        ("def load", "def lode", "datasets/points.py: load is missing"),
        ("x[200:])", "x[201:])", "load returned test_inputs and test_targets of different counts"),
    ],
)
def test_data_that_cannot_be_used_are_told(faults: Faults, old: str, new: str, words: str) -> None:
    """In the words of the commands that read them; of made data, students must not have the hidden ones."""
    assert POINTS.count(old) == 1
    [sentence] = faults(COMPLETED, data=POINTS.replace(old, new))
    assert words in sentence


def test_a_file_of_measures_that_cannot_be_executed_is_told(faults: Faults) -> None:
    """It was told when the first student was graded."""
    [sentence] = faults(measures="import numpyy\n" + MEASURES)
    assert sentence.startswith("measures.py: executing it raised ModuleNotFoundError")


IMAGES = """
import numpy as np
from grader.kit import Splits
NAME, TITLE, CLASSES = "shapes", "Shapes", ("bar", "ring")

def load(source, *, seed, train_share=0.7, cache=None):
    images = np.random.default_rng(seed).integers(0, 255, (20, 12, 10), dtype=np.uint8)
    labels = np.arange(20) % 2
    names = tuple(f"{CLASSES[label]}/{number}.png" for number, label in enumerate(labels))
    return Splits(NAME, CLASSES, images[:10], labels[:10], names[:10], images[10:], labels[10:], names[10:])
"""


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ('classes = ["bar", "ring"]\nsize = [12, 10]\nchannels = 1', ""),
        (
            'classes = ["bar", "ring"]',
            "datasets/shapes.py makes images of 12 x 10 pixels with 1 channel, and [data] of assignment.toml "
            "says otherwise. Write size = [12, 10] and channels = 1 there.",
        ),
        (
            'classes = ["ring", "bar"]\nsize = [12, 10]\nchannels = 1',
            "datasets/shapes.py has the classes bar, ring, and [data] of assignment.toml names ring, bar. "
            "Make them the same, in one order.",
        ),
        (
            'classes = ["bar", "cross", "ring"]\nsize = [12, 10]\nchannels = 1',
            "datasets/shapes.py has 2 classes, and [data] of assignment.toml names 3. Make them the same.",
        ),
    ],
)
def test_images_are_as_the_assignment_says(
    faults: Faults, tiny_course: Path, stated: str, words: str
) -> None:
    """Students' own machines have nothing else to go by."""
    (tiny_course / "datasets" / "shapes.py").write_text(IMAGES, encoding="utf-8")
    file = tiny_course / "reference" / "tiny" / "assignment.toml"
    text = file.read_text(encoding="utf-8")
    old = 'kind = "arrays"\nreal = "points"\nsynthetic = "points"'
    assert text.count(old) == 1
    new = f'real = "shapes"\nsynthetic = "shapes"\n{stated}'
    file.write_text(text.replace(old, new), encoding="utf-8")
    assert faults(COMPLETED) == ((words,) if words else ())
