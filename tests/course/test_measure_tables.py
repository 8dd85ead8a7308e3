"""`[[measure]]` beyond accuracies: own functions, calls, breakpoints of any direction, data of any kind."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.course.assignment_file import read_assignment
from grader.course.assignment_tables import MeasureTable, ProgramTable
from grader.course.dataset_file import load_examples
from grader.course.measures import measure_function, measures
from grader.course.student_template import student_files
from grader.domain.assignment import Component
from grader.domain.errors import CourseError
from grader.domain.measure import Scale
from grader.kit.splits import ARRAY_TYPES
from grader.protocol.frames import DTYPES

PARTS = (
    Component("Line", "class", "slope, offset=0.0"),
    Component("fit", "function", "model, inputs, targets, epochs"),
)
CALL = {
    "model": "Line",
    "function": "fit",
    "arguments": {"slope": 1.0},
    "given": {"model": "{model}", "inputs": "{inputs}", "targets": "{targets}", "epochs": 3},
}
ERROR = {"id": "error", "function": "squared", "better": "lower", "call": CALL}
FILE = """
id = "lines"
title = "Lines"
[files]
stem = "{student_id}_lines"
required.code = [".py"]
[data]
kind = "arrays"
real = "points"
synthetic = "points"
[[component]]
name = "Line"
kind = "class"
signature = "slope, offset=0.0"
[[component]]
name = "fit"
kind = "function"
signature = "model, inputs, targets, epochs"
[[measure]]
id = "error"
function = "squared"
better = "lower"
reference = 0.5
[measure.call]
model = "Line"
arguments = { slope = 1.0 }
function = "fit"
given = { model = "{model}", inputs = "{inputs}", targets = "{targets}", epochs = 3 }
[[rubric]]
id = "parts"
title = "Parts"
points = 10
components = { Line = 6, fit = 4 }
[[rubric]]
id = "measured"
title = "Measured"
points = 5
measured = "error"
threshold = 2.5
breakpoints = [{ at = "150 % of reference", points = 5 }, { at = 3.0, points = 0 }]
"""
FUNCTIONS = "def squared(outputs, targets):\n    return float(((outputs - targets) ** 2).mean())\n"
CHECK = '''"""Checks."""
import pytest

@pytest.mark.component("{part}")
def test_{part}_is_there(student):
    """It is there."""
'''


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """The folder of a small assignment."""
    folder = tmp_path / "reference" / "lines"
    (folder / "checks").mkdir(parents=True)
    (folder / "assignment.toml").write_text(FILE)
    (folder / "solution.py").write_text("class Line: ...\ndef fit(): ...\n")
    (folder / "student_readme.md").write_text("# Lines\n")
    text = CHECK.format(part="Line") + CHECK.format(part="fit").partition("import pytest\n")[2]
    (folder / "checks" / "test_public.py").write_text(text)
    (folder / "checks" / "measures.py").write_text(FUNCTIONS)
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "points.py").write_text(POINTS)
    return folder


POINTS = """
import numpy as np
from grader.kit import Examples
NAME, TITLE = "points", "Points"

def load(source, *, seed, train_share=0.7, cache=None):
    x = np.random.default_rng(seed % 2**32).normal(size=(10, 1))
    return Examples(NAME, x[:6], 2 * x[:6], x[6:], 2 * x[6:])
"""


def test_the_types_of_arrays_are_those_that_travel() -> None:
    """A data set file may give just what reaches a worker."""
    assert ARRAY_TYPES == DTYPES


def test_a_measure_by_a_call_is_read(lines: Path) -> None:
    """Its call, its direction, what it is asked at and how its points fall."""
    assignment = read_assignment(lines)
    (measure,), item = assignment.measures, assignment.item_measured("error")
    assert measure.scale == Scale(lower_is_better=True, is_share=False) and measure.call is not None
    assert (measure.call.model, measure.call.given["epochs"]) == ("Line", 3)
    assert item is not None and item.scale == measure.scale and item.threshold == 2.5
    assert item.breakpoints == ((0.75, 5.0), (3.0, 0.0))
    assert not assignment.program_rules.trains and assignment.trains == ("Line", "fit")
    assert measure_function(assignment, measure)(np.ones(3), np.zeros(3)) == 1.0


def test_students_get_the_functions_of_measures(lines: Path) -> None:
    """So that `grader train` measures as the grader does."""
    files = student_files(lines, lines.parents[1] / "datasets")
    assert files["measures.py"] == FUNCTIONS and "points" in files["datasets/points.py"]
    assert tomllib.loads(files["assignment.toml"])["measure"][0]["call"]["function"] == "fit"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('model = "Line"', 'model = "Lime"', "model = 'Lime' is not a component. Did you mean 'Line'?"),
        ('function = "fit"', 'function = "Line"', "function = 'Line' is a class"),
        ("epochs = 3 }", "epoch = 3 }", "'epoch' is not a parameter of fit("),
        (", epochs = 3 }", " }", "given: 'epochs' of fit(model, inputs, targets, epochs) has no default and"),
        ("arguments = { slope = 1.0 }\n", "", "arguments: 'slope' of Line(slope, offset=0.0) has no default"),
        ('"{targets}"', '"{labels}"', "'{labels}' stands for nothing here"),
        ('inputs = "{inputs}", ', "", "'given' hands over no data"),
        ("epochs = 3 }", "epochs = 2026-01-01 }", "is a date"),
        ('function = "squared"\n', "", "of accuracies, higher is better"),
        ('function = "squared"', 'function = "cubed"', "measures.py defines no function cubed"),
        ('function = "squared"', 'function = "a b"', "is not a name"),
        ("reference = 0.5\n", "", "has no 'reference'"),
        ('"150 % of reference"', '"chance"', "Write a number, or"),
        ("{ at = 3.0, points = 0 }", "{ at = 3.0, points = 9 }", "gives 9 points, more than the 5"),
        ("{ at = 3.0, points = 0 }", "{ at = 0.1, points = 0 }", "Put them in ascending order"),
        ('points = 5 }, { at = 3.0', 'points = 4 }, { at = 3.0', "its first breakpoint gives 4"),
        (FILE[FILE.index("[measure.call]") : FILE.index("[[rubric]]")], "", "has no 'call'"),
        ('kind = "arrays"\n', "", "'classes' is missing"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_told(lines: Path, old: str, new: str, words: str) -> None:
    """One sentence, with what to do."""
    assert FILE.count(old) >= 1
    (lines / "assignment.toml").write_text(FILE.replace(old, new, 1))
    with pytest.raises(CourseError) as raised:
        read_assignment(lines)
    assert words in str(raised.value)


def test_functions_that_are_not_there_are_told(lines: Path) -> None:
    """Before anybody is graded."""
    (lines / "checks" / "measures.py").unlink()
    with pytest.raises(CourseError, match=r"there is no measures\.py in checks/\. Write it there"):
        read_assignment(lines)
    (lines / "checks" / "measures.py").write_text("def squared(:")
    with pytest.raises(CourseError, match=r"measures\.py: it is not Python"):
        read_assignment(lines)
    (lines / "checks" / "measures.py").write_text("1 / 0\n" + FUNCTIONS)
    assignment = read_assignment(lines)
    with pytest.raises(CourseError, match=r"measures\.py: executing it raised ZeroDivisionError"):
        measure_function(assignment, assignment.measures[0])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"id": "a", "unit": "number"}, "accuracies are shares of one"),
        ({"id": "a", "better": "lower"}, "higher is better"),
    ],
)
def test_accuracies_are_shares(table: dict[str, Any], words: str) -> None:
    """Where no function is named, the accuracy is measured."""
    with pytest.raises(CourseError, match=words):
        measures([MeasureTable(**table)], ProgramTable(), PARTS)
    f1 = measures([MeasureTable(id="f1", function="macro_f1", unit="percent")], ProgramTable(), PARTS)[0]
    assert f1.scale == Scale() and f1.function == "macro_f1"


def test_several_measures_of_one_model_by_calls() -> None:
    """Only what is replayed must be told apart by models and weights."""
    both = measures([MeasureTable(**ERROR), MeasureTable(**{**ERROR, "id": "other"})], ProgramTable(), PARTS)
    assert [measure.id for measure in both] == ["error", "other"]


def test_examples_of_any_kind_are_loaded(lines: Path) -> None:
    """Another seed gives other ones."""
    datasets = lines.parents[1] / "datasets"
    one, other = (load_examples(datasets, "points", None, seed=seed) for seed in (1, 2))
    assert one.train_inputs.shape == (6, 1) and one.test_targets.shape == (4, 1)
    assert not np.array_equal(one.test_inputs, other.test_inputs)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return Examples(NAME, x[:6]", "return (NAME, x[:6]", "a tuple instead of Examples"),
        ("Examples(NAME", "Examples('other'", "the name 'other' instead of 'points'"),
        ("x[:6], 2 * x[:6]", "x[:6], 2 * x[:5]", "train_inputs and train_targets of different counts"),
        ("x[6:], 2 * x[6:]", "x[6:], list(x[6:])", "test_targets that are not an array of"),
        ("x[6:], 2 * x[6:]", "x[10:], x[10:]", "test_inputs of shape (0, 1)"),
        ("x[6:], 2 * x[6:]", "x[6:], x[6:].astype(object)", "test_targets that are not an array of"),
        ("x = np", "1 / 0; x = np", "load raised ZeroDivisionError"),
    ],
)
def test_malformed_examples_are_told(lines: Path, old: str, new: str, words: str) -> None:
    """They would fail in a student's face otherwise."""
    datasets = lines.parents[1] / "datasets"
    assert old in POINTS
    (datasets / "points.py").write_text(POINTS.replace(old, new))
    with pytest.raises(CourseError) as raised:
        load_examples(datasets, "points", None, seed=1)
    assert words in str(raised.value)
