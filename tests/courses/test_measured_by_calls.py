"""Two small whole assignments without images: judged part by part, trained and measured by a call."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import Kind, homework_versions
from grader.course.reference_solution import homework_source, solved_source
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Small:
    """One of the assignments.

    Attributes:
        mistakes: Some that are tried each time; all of them are tried by a slow test.
        broken: A mistake whose training misses what the reference reaches.
        reaches, misses: Whether a measured value is the reference's, and the broken one's.
    """

    course: str
    id: str
    stem: str
    mistakes: tuple[str, ...]
    broken: str
    reaches: Callable[[float], bool]
    misses: Callable[[float], bool]
    counts: tuple[int, int, int]
    call: str

    @property
    def folder(self) -> Path:
        return HERE / self.course / "reference" / self.id

    @property
    def assignment(self) -> Assignment:
        return read_assignment(self.folder)

    def text(self, made: Callable[[str, str], str]) -> str:
        """Its solution, made into something."""
        return made((self.folder / "solution.py").read_text(encoding="utf-8"), "solution.py")


NUMPY = Small(
    "by_hand",
    "numpy_network",
    "Network",
    ("linear_gradients_added", "norm_constant_statistics", "loss_overflows"),
    "fit_shuffles_inputs_only",
    lambda value: value > 0.95,
    lambda value: value < 0.85,  # learns nothing: a third by chance, up to two thirds with some seeds
    (7, 36, 11),
    "fit(network=model, inputs, targets, epochs=16",
)
LANGUAGE = Small(
    "language",
    "char_gpt",
    "GPT",
    ("attention_sees_the_next", "generate_crops_the_end", "gpt_shares_a_block"),
    "fit_never_steps",
    lambda value: value < 2.9,
    lambda value: value > 4.0,
    (7, 42, 10),
    "fit(model, tokens=inputs, epochs=4",
)
SMALL = [NUMPY, LANGUAGE]
Run = Callable[..., Result]


@pytest.fixture(params=SMALL, ids=lambda small: small.id)
def small(request: pytest.FixtureRequest) -> Any:
    """Each of them."""
    return request.param


@pytest.fixture
def run(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in a copy of its course."""
    monkeypatch.chdir(tmp_path)
    course = shutil.copytree(HERE / small.course, tmp_path / "course")
    monkeypatch.setenv("GRADER_COURSE", str(course))
    return lambda *words: CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")


def test_it_has_what_a_whole_assignment_has(small: Small) -> None:
    """Mistakes of each part, forms, a measure by a call."""
    assignment, (parts, mistakes, forms) = small.assignment, small.counts
    found = homework_versions(assignment)
    mistaken = {part for each in found if each.kind is Kind.MISTAKE for part in each.parts}
    assert mistaken == {component.name for component in assignment.components} and len(mistaken) == parts
    assert sum(each.kind is Kind.MISTAKE for each in found) == mistakes >= 20
    assert sum(each.kind is Kind.FORM for each in found) == forms >= 10
    assert assignment.measures[0].call is not None and not assignment.required_data().are_images


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_some_variants(small: Small, run: Run, number: int, on_warm_hosts: None) -> None:
    """The reference has full marks; a mistake is named, and costs its own part alone."""
    done = run("validate", small.id, "--only", ("reference", *small.mistakes)[number])
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_it_is_valid(small: Small, run: Run) -> None:
    """All forms, all mistakes: each by its name."""
    done, mistakes = run("validate", small.id), small.counts[1]
    told = f"mistakes {mistakes} of {mistakes} detected, {mistakes} named"
    assert done.exit_code == 0 and told in done.output, done.output[-3000:]


@pytest.mark.slow
def test_the_stated_reference_holds(small: Small, run: Run) -> None:
    """Trained three times, it reaches what assignment.toml states, and earns all points."""
    done = run("validate", small.id, "--train", "--seeds", "3")
    assert done.exit_code == 0, done.output


def test_data_that_are_made_need_no_path_and_no_wrong_one_is_taken(
    small: Small, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for `grader train`; a `load` that looks at no path must not hide a mistyped one."""
    (tmp_path / "class").mkdir()
    words = ("grade", tmp_path / "class", "--assignment", small.id, "--out", tmp_path / "out")
    wrong = run(*words, "--data", "shapes")
    assert wrong.exit_code == 2
    assert "--data shapes: there is no such file or folder. These data are made" in wrong.output
    asked: list[str] = []

    def hidden(course: object, assignment: object, data: str, salt: object) -> None:
        asked.append(data)
        raise UsageError("That is enough.")

    monkeypatch.setattr("grader.grading.grade_class.hidden_data", hidden)
    assert "That is enough." in run(*words).output and asked == ["synthetic"]


def test_what_the_course_states_is_not_asked_of_a_student(small: Small, run: Run, tmp_path: Path) -> None:
    """A path to data that are made, and a number of epochs, which the call has."""
    assert run("template", small.id).exit_code == 0
    homework = tmp_path / "course" / "template" / small.id / "homework.py"
    homework.write_text(f"EPOCHS = 5\n{small.text(solved_source)}", encoding="utf-8")
    wrong = run("train", homework, "--data", "shapes")
    assert wrong.exit_code == 2 and "These data are made, and need none: leave it out." in wrong.output
    shorter = run("train", homework, "--epochs", "1")
    assert shorter.exit_code == 2 and "--epochs 1: the course calls " in shorter.output


@pytest.mark.slow
def test_a_class_is_trained_and_measured(small: Small, run: Run, tmp_path: Path, on_warm_hosts: None) -> None:
    """The reference reaches what is stated, a broken training misses it, stubs get nothing."""
    mistake = next(each for each in homework_versions(small.assignment) if each.name == small.broken)
    texts = (small.text(solved_source), mistake.source, small.text(homework_source))
    (tmp_path / "class").mkdir()
    for number, text in enumerate(texts, 1):
        path = tmp_path / "class" / f"40010000{number}_{small.stem}.py"
        path.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    done = run("grade", tmp_path / "class", "--assignment", small.id, "--out", out)
    assert done.exit_code == 0, done.output
    right, broken, empty = json.loads((out / "results.json").read_text())["submissions"]
    (measure,) = small.assignment.measures
    assert right["total"] == 100 and small.reaches(right["measurements"][measure.id])
    assert small.misses(broken["measurements"][measure.id])
    lost = [item["id"] for item in broken["items"] if item["points"] < item["max"]]
    assert "measured" in lost and len(lost) == 2, lost
    assert empty["total"] == 0 and empty["measurements"][measure.id] is None
    report = (out / "students" / "400100001" / "report.html").read_text(encoding="utf-8")
    heading = measure.title[:1].upper() + measure.title[1:]
    assert f"<h2>{heading}</h2>" in report and "test image" not in report


@pytest.mark.slow
def test_a_student_measures_at_home(small: Small, run: Run, tmp_path: Path) -> None:
    """`grader train` in the template makes the same call on data of its own."""
    assert run("template", small.id).exit_code == 0
    homework = tmp_path / "course" / "template" / small.id / "homework.py"
    homework.write_text(small.text(solved_source), encoding="utf-8")
    done = run("train", homework)
    assert done.exit_code == 0 and small.call in done.output, done.output
    assert small.assignment.measures[0].title in done.output


def said_of_replays(text: str) -> list[str]:
    """What would be said of a script whose own loops are replayed, and of pictures."""
    words = ("optimizer", "transform", "handed out", "nothing:", "your loop over epochs", "made-up images")
    return [word for word in words if word in text]


@pytest.mark.slow
def test_a_student_is_shown_the_call(run: Run, small: Small, tmp_path: Path, on_warm_hosts: None) -> None:
    """`check`, `program` and `pack` tell what the grader calls, and ask for no loop of the student's."""
    assert run("template", small.id).exit_code == 0
    folder = tmp_path / "course" / "template" / small.id
    homework = folder / "homework.py"
    homework.write_text(small.text(solved_source), encoding="utf-8")
    packed = ("pack", folder, "--id", "400101204", "--out", tmp_path / "handin")
    for words in (("check", homework), ("program", homework), packed):
        done = run(*words)
        assert done.exit_code == 0, done.output
        assert small.call in done.output and said_of_replays(done.output) == [], done.output
    preview = run("data", "preview", "--assignment-folder", folder)
    assert preview.exit_code == 2 and "are arrays, so there is no picture of them" in preview.output
