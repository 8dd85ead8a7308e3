"""The files of a course as editors and systems leave them, and copies that students' commands can read."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.course.assignment_file import digest, read_assignment
from grader.course.beginning import begin_assignment, begin_course
from grader.course.homework_versions import homework_versions
from grader.course.locate import located_course, student_assignment
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError
from grader.judge.course_code import course_code
from grader.judge.examination import run_pytest
from grader.sandbox.host_client import Host

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
INSTRUCTORS = "# >>> instructors only\n{}\n# <<<\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The folder of a small assignment, in a course of its own."""
    begin_course(tmp_path / "course", "A course")
    course = located_course(tmp_path / "course")
    begin_assignment(course, "tiny", "minimal")
    return course.reference("tiny")


def read_all(folder: Path) -> Assignment:
    """Read all that grading and validating read of an assignment."""
    assignment = read_assignment(folder)
    homework_versions(assignment)
    course_code(assignment)
    return assignment


def template(folder: Path) -> str:
    """What `grader template` says when it makes the students' folder, errors included."""
    course = folder.parents[1]
    result = CliRunner().invoke(cli, ["--course", str(course), "template", folder.name])
    assert result.exit_code in (0, 2), result.output
    return result.output


def written(folder: Path) -> Iterator[Path]:
    yield folder.parents[1] / "course.toml"
    yield from (path for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".md"))


def test_a_byte_order_mark_is_no_part_of_a_file(tiny: Path) -> None:
    for path in written(tiny):
        path.write_bytes(BYTE_ORDER_MARK + path.read_bytes())
    assert read_all(tiny).id == "tiny"
    template(tiny)
    handed_out = tiny.parents[1] / "template" / "tiny"
    assert student_assignment(handed_out).checks
    files = [path for path in handed_out.iterdir() if path.suffix != ".whl"]
    assert len(files) == 5
    assert not any(BYTE_ORDER_MARK in path.read_bytes() for path in files)


def test_what_editors_and_systems_leave_is_no_part_of_an_assignment(tiny: Path) -> None:
    before = digest(tiny)
    for folder in ("", "checks", "mistakes", "forms", "handin"):
        (tiny / folder).mkdir(exist_ok=True)
        (tiny / folder / ".#solution.py").symlink_to("somebody@elsewhere.123")
        (tiny / folder / "._solution.py").write_bytes(b"\0\x05\x16\x07\xff")
        (tiny / folder / ".ipynb_checkpoints").mkdir()
        (tiny / folder / ".ipynb_checkpoints" / "solution-checkpoint.py").write_text("def (")
        (tiny / folder / "__pycache__").mkdir()
    assert read_all(tiny).digest == before


@pytest.mark.parametrize("place", ["checks/test_parts.py", "mistakes/new.py", "forms/new.py", "solution.py"])
def test_what_is_no_file_is_named(tiny: Path, place: str) -> None:
    (tiny / place).unlink(missing_ok=True)
    (tiny / place).mkdir()
    with pytest.raises(CourseError, match=rf"{re.escape(place)} cannot be read \(Is a directory\)\. Put a"):
        read_all(tiny)


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """Also one in which pytest sees the name of a test, and its parameters."""
    begin_course(tmp_path / "Deep::Learning [2]", "A course")
    course = located_course(tmp_path / "Deep::Learning [2]")
    begin_assignment(course, "tiny", "minimal")
    assignment = course.assignment("tiny")
    worked_in: list[Path] = []
    paths = sorted(assignment.folder.glob("checks/test_*.py"))
    run_pytest(paths, assignment, course_code(assignment), lambda checks: worked_in.append(Path.cwd()))
    assert len(paths) == 2 and worked_in == [Path.cwd()]


def test_options_of_a_persons_own_tests_choose_no_checks(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-n auto -k nothing")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    assignment = read_assignment(tiny)
    used: list[bool] = []
    paths = sorted(tiny.glob("checks/test_*.py"))
    run_pytest(paths, assignment, course_code(assignment), lambda checks: used.append(True))
    assert used == [True] and "PYTEST_ADDOPTS" in os.environ


def test_what_is_too_long_is_told_with_its_limit(tiny: Path) -> None:
    marking = tiny / "marking.toml"
    marking.write_text(f'[[item]]\nid = "a"\npart = "report"\npoints = -1\ntext = "{"a" * 2001}"\n')
    told = r"'text' has 2001 characters, and at most 2000 can stand there\. Shorten it\.$"
    with pytest.raises(CourseError, match=told):
        read_assignment(tiny)
    marking.unlink()
    data = '[data]\nreal = "a"\nsynthetic = "a"\nclasses = ["a", "b"]\nsize = [8, 8, 3]\n'
    (tiny / "assignment.toml").write_text(f"{(tiny / 'assignment.toml').read_text()}\n{data}")
    with pytest.raises(CourseError, match=r"\[data\]: 'size' has 3 entries, and at most 2 can stand there"):
        read_assignment(tiny)


# --- what students' commands can read -------------------------------------------------------------------


def test_a_faulty_assignment_is_not_handed_out(tiny: Path) -> None:
    settings = tiny / "assignment.toml"
    settings.write_text(settings.read_text() + "[limits]\nload_secnds = 3\n")
    assert "'load_secnds', which means nothing here. Did you mean 'load_seconds'?" in template(tiny)
    assert not (tiny.parents[1] / "template").exists()


def test_a_copy_that_lacks_what_it_needs_is_not_handed_out(tiny: Path) -> None:
    settings = tiny / "assignment.toml"
    deadline = INSTRUCTORS.format("deadline = 2027-01-31T23:59:00+00:00")
    settings.write_text(deadline + settings.read_text() + "[late]\npoints_per_day = 5\n")
    assert read_assignment(tiny).deadline is not None
    said = template(tiny)
    assert "[late] has no deadline to count from" in said
    assert "This is about the files that students get of reference/tiny" in said
    assert not (tiny.parents[1] / "template").exists()


def test_a_copy_that_cannot_be_written_is_told(tiny: Path) -> None:
    (tiny.parents[1] / "template").write_text("")
    told = template(tiny)
    assert "homework.py cannot be written (Not a directory). Work where you may write" in told


# --- what cannot be executed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "line", "told"),
    [
        (
            "solution.py",
            "import no_such_module",
            r"^solution\.py:\d+: executing it raised ModuleNotFoundError: No",
        ),
        ("solution.py", "def (", r"^solution\.py:\d+: this is not valid Python"),
        (
            "mistakes/sums_instead.py",
            "1 / 0",
            r"^mistakes/sums_instead\.py:\d+: executing it raised ZeroDivision",
        ),
    ],
)
def test_code_of_the_course_that_raises_is_named_with_its_line(
    tiny: Path, place: str, line: str, told: str
) -> None:
    (tiny / place).write_text(f"{(tiny / place).read_text()}\n{line}\n")
    with pytest.raises(CourseError, match=told):
        course_code(read_assignment(tiny))


def test_a_judge_that_cannot_load_the_course_says_that_the_course_is_at_fault(tiny: Path) -> None:
    """And not that the grader should be installed again."""
    (tiny / "solution.py").write_text(f"import no_such_module\n{(tiny / 'solution.py').read_text()}")
    with pytest.raises(CourseError, match=r"^solution\.py:1: executing it raised ModuleNotFoundError"):
        Host.start("grader.judge", [str(tiny)])
