"""A network written by hand in numpy: judged part by part, trained by a call, measured on hidden points."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.course.solution_regions import homework_source, solved_source
from grader.course.variants import Kind, variants

COURSE = Path(__file__).parent / "by_hand"
FOLDER = COURSE / "reference" / "numpy_network"
MISTAKES = [
    "linear_gradients_added",
    "norm_constant_statistics",
    "loss_overflows",
    "fit_shuffles_inputs_only",
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """A command in a copy of the course."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADER_COURSE", str(shutil.copytree(COURSE, tmp_path / "course")))
    return lambda *words: CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")


def test_it_has_what_a_whole_assignment_has() -> None:
    """Seven parts; mistakes of each; forms; one measure by a call."""
    assignment = read_assignment(FOLDER)
    found = variants(assignment)
    mistaken = {part for each in found if each.kind is Kind.MISTAKE for part in each.parts}
    assert mistaken == {component.name for component in assignment.components} and len(mistaken) == 7
    assert sum(each.kind is Kind.MISTAKE for each in found) >= 30
    assert sum(each.kind is Kind.FORM for each in found) >= 10
    assert assignment.measures[0].call is not None and not assignment.required_data().are_images


@pytest.mark.parametrize("variant", ["reference", *MISTAKES])
def test_some_variants(run: Callable[..., Result], variant: str, on_warm_hosts: None) -> None:
    """The reference has full marks; a mistake is named, and costs its own part alone."""
    done = run("validate", "numpy_network", "--only", variant)
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_it_is_valid(run: Callable[..., Result]) -> None:
    """All forms, all mistakes: each by its name."""
    done = run("validate", "numpy_network")
    assert done.exit_code == 0 and "36 of 36 detected, 36 named" in done.output, done.output[-3000:]


def test_a_class_is_trained_and_measured(
    run: Callable[..., Result], tmp_path: Path, on_warm_hosts: None
) -> None:
    """The reference reaches what is stated, a broken training misses it, stubs get nothing."""
    solution = (FOLDER / "solution.py").read_text(encoding="utf-8")
    solved = solved_source(solution, "solution.py")
    mistake = next(
        each for each in variants(read_assignment(FOLDER)) if each.name == "fit_shuffles_inputs_only"
    )
    for student_id, text in (
        ("400100001", solved),
        ("400100002", mistake.source),
        ("400100003", homework_source(solution, "solution.py")),
    ):
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / f"{student_id}_Network.py").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    done = run(
        "grade", tmp_path / "class", "--assignment", "numpy_network", "--data", "synthetic", "--out", out
    )
    assert done.exit_code == 0, done.output
    right, broken, empty = json.loads((out / "results.json").read_text())["submissions"]
    assert right["total"] == 100 and right["measurements"]["hidden_accuracy"] > 0.95
    assert broken["measurements"]["hidden_accuracy"] < 0.6
    points = {item["id"]: item["points"] for item in broken["items"]}
    assert points["layers"] == 40 and points["learning"] < 40 and points["measured"] < 10
    assert empty["total"] == 0 and empty["measurements"]["hidden_accuracy"] is None
    report = (out / "students" / "400100001" / "report.html").read_text(encoding="utf-8")
    assert "Accuracy on hidden points" in report and "test image" not in report


def test_a_student_measures_at_home(run: Callable[..., Result], tmp_path: Path) -> None:
    """`grader train` in the template makes the same call on data of its own."""
    assert run("template", "numpy_network").exit_code == 0
    folder = tmp_path / "course" / "template" / "numpy_network"
    solved = solved_source((FOLDER / "solution.py").read_text(encoding="utf-8"), "solution.py")
    (folder / "homework.py").write_text(solved, encoding="utf-8")
    done = run("train", folder / "homework.py")
    assert done.exit_code == 0 and "fit(network=model, inputs, targets, epochs=8" in done.output, done.output
    assert "accuracy on hidden points" in done.output
