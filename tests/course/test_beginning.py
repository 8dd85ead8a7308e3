"""What `grader new-course` and `grader new-assignment` write: small, and valid at once."""

import re
import tomllib
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course.beginning import BEGINNINGS, KINDS, begin_assignment, begin_course
from grader.course.locate import located_course
from grader.course.student_template import student_wheel
from grader.domain.errors import UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """A command in an empty folder, in which a course may be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    return lambda *words: CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")


def test_a_course_has_a_secret_of_its_own(tmp_path: Path) -> None:
    """Its title may hold whatever TOML must not."""
    for name in ("one", "other"):
        begin_course(tmp_path / name, 'A "course" \\ of ours 🎓\x7f')
    one, other = (located_course(tmp_path / name) for name in ("one", "other"))
    assert one.title == 'A "course" \\ of ours 🎓\x7f' and not one.secret_is_public
    assert one.secret != other.secret and len(one.secret) > 30
    with pytest.raises(UsageError, match="something is already there"):
        begin_course(tmp_path / "one", "Again")


@pytest.mark.parametrize("wrong", ["Upper", "a-b", "1st", "../x", "ü", ""])
def test_an_id_that_cannot_be_one_is_told(tmp_path: Path, wrong: str) -> None:
    begin_course(tmp_path / "course", "Course")
    with pytest.raises(UsageError, match="cannot be the id of an assignment"):
        begin_assignment(located_course(tmp_path / "course"), wrong, "minimal")
    assert not list((tmp_path / "course" / "reference").iterdir())


def test_nothing_is_overwritten(run: Callable[..., Result]) -> None:
    """A second one of the same name is refused, in a sentence."""
    assert run("new-course", "course").exit_code == 0
    assert run("new-assignment", "mine", "--course", "course").exit_code == 0
    again = run("new-assignment", "mine", "--course", "course")
    assert again.exit_code == 2 and "this assignment exists already" in again.output
    unknown = run("new-assignment", "other", "--like", "music", "--course", "course")
    assert unknown.exit_code == 2 and "'minimal', 'numpy', 'text', 'vision'" in unknown.output


def test_titles_are_text(tmp_path: Path) -> None:
    begin_course(tmp_path / "course", "Course")
    course = located_course(tmp_path / "course")
    begin_assignment(course, "mine", "minimal", 'Say "hi" \\ bye')
    text = (course.reference("mine") / "assignment.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["title"] == 'Say "hi" \\ bye'
    assert '# Say "hi" \\ bye' in (course.reference("mine") / "student_readme.md").read_text(encoding="utf-8")


def test_the_least_is_small() -> None:
    """Some hundred lines, of which nothing must be deleted to begin."""
    lines = [path.read_text(encoding="utf-8") for path in (BEGINNINGS / "minimal").rglob("*.txt")]
    assert sum(text.count("\n") for text in lines) < 220
    assert {path.name for path in BEGINNINGS.iterdir() if path.is_dir()} == set(KINDS)


def test_students_do_not_get_the_beginnings() -> None:
    """They hold solutions; the wheel that instructors install has them."""
    names = zipfile.ZipFile(BytesIO(student_wheel()[1])).namelist()
    assert not [name for name in names if "beginnings" in name]
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "course/beginnings/**/*.txt" in packed["tool"]["setuptools"]["package-data"]["grader"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_wheel_of_students_says_that_nothing_can_begin_from_it(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It lacks the beginnings: the command must not end as if it had written something."""
    zipfile.ZipFile(BytesIO(student_wheel()[1])).extractall(tmp_path / "site")
    monkeypatch.setattr(
        "grader.course.beginning.BEGINNINGS", tmp_path / "site" / "grader" / "course" / "beginnings"
    )
    assert run("new-course", "course").exit_code == 0
    refused = run("new-assignment", "mine", "--like", kind, "--course", "course")
    assert refused.exit_code == 2 and "the wheel that students get" in refused.output
    assert "Install the grader from its repository" in refused.output
    assert not (tmp_path / "course" / "reference" / "mine").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_is_valid_at_once(run: Callable[..., Result], kind: str, on_warm_hosts: None) -> None:
    """From nothing: the reference full, the template nothing, each mistake by its name."""
    assert run("new-course", "course").exit_code == 0
    assert run("new-assignment", "mine", "--like", kind, "--course", "course").exit_code == 0
    done = run("validate", "mine", "--course", "course")
    assert done.exit_code == 0, done.output
    assert re.search(r"forms 1 of 1 at full marks; mistakes (\d) of \1 detected, \1 named", done.output)


@pytest.mark.slow
def test_from_nothing_to_a_graded_class(run: Callable[..., Result], tmp_path: Path) -> None:
    """The page's own commands, with the assignment that is trained: its reference earns all points."""
    page = (ROOT / "docs" / "instructor.md").read_text(encoding="utf-8")
    block = page.partition("## From nothing to a graded class")[2].partition("```\n")[2].partition("```")[0]
    commands = re.findall(r"^grader (\S+)", block, re.MULTILINE)
    assert commands == ["new-course", "new-assignment", "validate", "template", "grade"]
    assert run("new-course", "my_course").exit_code == 0
    given = ("--course", "my_course")
    assert run("new-assignment", "first", "--like", "vision", *given).exit_code == 0
    trained = run("validate", "first", "--train", "--seeds", "2", *given)
    assert trained.exit_code == 0, trained.output
    assert run("template", "first", *given).exit_code == 0
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    solution = (tmp_path / "my_course/reference/first/solution.py").read_text(encoding="utf-8")
    (uploads / "400100001_first.py").write_text(solution, encoding="utf-8")
    done = run("grade", uploads, "--assignment", "first", "--data", "synthetic", "--out", "results", *given)
    assert done.exit_code == 0, done.output
    assert "15 of 15" in done.output
