"""Drawn values, from the template to the grade: a term's, and each student's own."""

import contextlib
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.course.locate import Course, located_course
from grader.course.reference_solution import solved_source
from grader.course.student_template import handed_out_copy, student_files
from grader.domain.assignment_versions import Value
from grader.domain.submission import Submission
from grader.files.known_folders import is_public_checks
from grader.grading.grade_class import ClassResult, GradeRequest, grade_class
from grader.grading.submission_draws import values_of

FIRST, SECOND, OTHERS = "400101204", "400101211", "400101205"
Solved = Callable[[Mapping[str, Value]], str]


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the course whose assignment draws the heads of each student and the pooling of the term."""
    folder = shutil.copytree(Path(__file__).parent / "drawn", tmp_path / "drawn")
    return located_course(folder, environment={})


@pytest.fixture
def run(course: Course, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A command in the course."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADER_SECRET", raising=False)

    def command(*words: object) -> Result:
        return CliRunner().invoke(cli, ["--course", str(course.root), *map(str, words)], prog_name="grader")

    return command


@pytest.fixture
def values(course: Course) -> Callable[[str], dict[str, Value]]:
    """What was drawn for a student."""
    stated = read_assignment(course.reference("heads")).variant
    return lambda student_id: course.values("heads", stated, student_id)


@pytest.fixture
def solved(course: Course) -> Solved:
    """The solution with some values, as a student would hand it in."""
    text = (course.reference("heads") / "solution.py").read_text(encoding="utf-8")
    return lambda given: solved_source(text, "solution.py", given)


@pytest.fixture
def other_checks() -> Iterator[None]:
    """Public checks are collected in this process, which other tests do with those of other assignments."""
    public = _modules_of_public_checks()
    for name in public:
        del sys.modules[name]
    yield
    for name in _modules_of_public_checks():
        del sys.modules[name]
    sys.modules.update(public)


def _modules_of_public_checks() -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if is_public_checks(f"{name.rpartition('.')[2]}.py")
    }


class Silent:
    """Nobody watches."""

    def secret_is_public(self) -> None: ...
    def taken_in(self, taken_in: object) -> None: ...
    def starting(self) -> None: ...
    def grading(self, workload: object, *, trains: bool) -> AbstractContextManager[Any]:
        return nullcontext(lambda progress: None)


def graded(course: Course, path: Path, out: Path, **others: Any) -> ClassResult:
    request = GradeRequest(path, "heads", out, "the tests", course=course.root, **others)
    return grade_class(request, clock=lambda: datetime.now(UTC), watch=Silent())


def records(out: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return {record["student_id"]: record for record in document["submissions"]}


# --- grading ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_student_is_graded_by_values_of_their_own(
    course: Course,
    tmp_path: Path,
    solved: Solved,
    values: Callable[[str], dict[str, Value]],
    on_warm_hosts: None,
) -> None:
    """Two with their own copies, and one with another's, who loses the points of what depends on it."""
    assert values(FIRST) == {"heads": 4, "pooling": "mean"} and values(SECOND)["heads"] == 8
    handed_in = {FIRST: values(FIRST), SECOND: values(SECOND), OTHERS: values(SECOND)}
    assert values(OTHERS)["heads"] == 4
    folder, out = tmp_path / "class", tmp_path / "out"
    for student_id, own in handed_in.items():
        (folder / student_id).mkdir(parents=True)
        (folder / student_id / f"{student_id}_Heads.py").write_text(solved(own), encoding="utf-8")
        # what a student's folder says of the values is nothing to go by
        (folder / student_id / "variant.json").write_text('{"student": "", "values": {"heads": 8}}')
    graded(course, folder, out)
    found = records(out)
    for student_id in (FIRST, SECOND):
        record = found[student_id]
        assert record["total"] == 10 and record["variant"] == values(student_id)
        assert [one["status"] for one in record["findings"] if one["check"] == "own_values"] == ["passed"]
    wrong = found[OTHERS]
    assert wrong["variant"] == {"heads": 4, "pooling": "mean"}
    assert wrong["total"] == 4, "the heads lose their points, and the pooling does not"
    [said] = [one for one in wrong["findings"] if one["check"] == "own_values"]
    assert said["status"] == "failed" and said["blame"] == "student" and said["component"] == "submission"
    assert "`HEADS = 8` is not what was drawn for you" in said["message"]
    assert "yours is 4" in said["message"] and said["where"].startswith(f"{OTHERS}_Heads.py:")
    page = (out / "students" / OTHERS / "report.html").read_text(encoding="utf-8")
    assert "Your values: <b>heads = 4, pooling = mean</b>" in page and "not what was drawn for you" in page


@pytest.mark.slow
def test_a_mistake_is_recognized_with_the_students_values(
    course: Course,
    tmp_path: Path,
    solved: Solved,
    values: Callable[[str], dict[str, Value]],
    on_warm_hosts: None,
) -> None:
    """By code with a drawn value of its own. What was graded is graded again only for other values."""
    right = "x.view(*x.shape[:2], self.heads, self.width).transpose(1, 2)"
    text = solved(values(SECOND))
    assert right in text
    wrong = text.replace(right, "x.view(*x.shape[:2], self.width, self.heads).permute(0, 3, 1, 2)")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / f"{SECOND}_Heads.py").write_text(wrong, encoding="utf-8")
    graded(course, tmp_path / "class", tmp_path / "out")
    diagnoses = [one["diagnosis"] for one in records(tmp_path / "out")[SECOND]["findings"]]
    assert diagnoses.count("interleaved") == 1
    again = graded(course, tmp_path / "class", tmp_path / "out")
    assert again.students == {SECOND: True}
    settings = course.root / "course.toml"
    settings.write_text(settings.read_text("utf-8").replace("2026-fall", "2027-spring"), encoding="utf-8")
    later = graded(course, tmp_path / "class", tmp_path / "out", allow_lower=True)
    assert later.students == {SECOND: False}
    assert records(tmp_path / "out")[SECOND]["variant"] == {"heads": 2, "pooling": "mean"}


def test_a_team_has_the_values_of_its_first_member(
    course: Course, values: Callable[[str], dict[str, Value]]
) -> None:
    assignment = read_assignment(course.reference("heads"))
    for student_id in (FIRST, SECOND):
        one = Submission(student_id, "heads", (), "0", team=(FIRST, SECOND))
        assert values_of(course, assignment, one) == values(FIRST)


# --- the template -----------------------------------------------------------------------------------------


def test_the_template_has_the_terms_values_and_first_choices(
    course: Course, run: Callable[..., Result]
) -> None:
    assert run("template", "heads").exit_code == 0
    template = course.root / "template" / "heads"
    homework = (template / "homework.py").read_text(encoding="utf-8")
    assert 'HEADS = 2  # variant: heads\nPOOLING = "mean"  # variant: pooling\n' in homework
    assert "# Yours has 2 heads." in homework and "to (batch, 2, tokens, dim / 2)" in homework
    assert "Yours has 2 heads." in (template / "homework.ipynb").read_text(encoding="utf-8")
    readme = (template / "README.md").read_text(encoding="utf-8")
    assert "into 2 heads, and take the mean over" in readme
    assert "> This copy is nobody's: each student has other values of `heads`" in readme
    made = student_files(course.reference("heads"), course.datasets, handed_out_copy(course, "heads"))
    assert all((template / name).read_text(encoding="utf-8") == text for name, text in made.items())


def test_students_get_copies_of_their_own(course: Course, run: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text(f"student_id,name\n{FIRST},A\n{SECOND},B\n", encoding="utf-8")
    done = run("template", "heads", "--students", tmp_path / "class.csv", "--out", tmp_path / "copies")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "copies").iterdir()) == [FIRST, SECOND]
    for student_id, heads in ((FIRST, 4), (SECOND, 8)):
        folder = tmp_path / "copies" / student_id
        assert f"HEADS = {heads}  # variant: heads" in (folder / "homework.py").read_text("utf-8")
        assert f"copy of student {student_id}: `heads = {heads}`" in (folder / "README.md").read_text("utf-8")
        told = json.loads((folder / "variant.json").read_text("utf-8"))
        assert told == {"student": student_id, "values": {"heads": heads, "pooling": "mean"}}
        assert list(folder.glob("vit_grader-*.whl"))
    assert not (course.root / "template").exists()
    alone = run("template", "heads", "--student", SECOND, "--out", tmp_path / "one")
    assert alone.exit_code == 0, alone.output
    assert "HEADS = 8" in (tmp_path / "one" / "homework.py").read_text("utf-8")
    (tmp_path / "one" / "homework.py").write_text("mine", encoding="utf-8")
    assert "To replace it: --force" in run("template", "heads", "--student", SECOND, "--out", "one").output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--student", FIRST], "Where should the students' own copies go? Say so: --out FOLDER"),
        (["--student", "a/b", "--out", "x"], "--student a/b: an id has letters, digits"),
        (["--student", FIRST, "--students", "y.csv", "--out", "x"], "Give one of them."),
        (["--students", "none.csv", "--out", "x"], "none.csv: cannot be read"),
    ],
)
def test_what_is_wrong_with_the_request_is_told(
    run: Callable[..., Result], words: list[str], sentence: str
) -> None:
    done = run("template", "heads", *words)
    assert done.exit_code == 2 and sentence in done.output


def test_nobody_gets_a_copy_where_nothing_is_drawn_for_students(
    course: Course, run: Callable[..., Result]
) -> None:
    settings = course.reference("heads") / "assignment.toml"
    settings.write_text(settings.read_text("utf-8").replace('per = "student"\n', ""), encoding="utf-8")
    done = run("template", "heads", "--student", FIRST, "--out", "x")
    assert done.exit_code == 2 and "heads draws no value for each student" in done.output


def test_values_for_students_are_not_drawn_from_the_public_secret(
    course: Course, run: Callable[..., Result]
) -> None:
    settings = course.root / "course.toml"
    settings.write_text(settings.read_text("utf-8").replace("of the tests", "change-me"), encoding="utf-8")
    for words in (["template", "heads", "--student", FIRST, "--out", "x"], ["new-term", "2027-spring"]):
        done = run(*words)
        assert (
            done.exit_code == 2 and "The course has no secret of its own to draw values from" in done.output
        )
        assert "Put a long random text into course.toml as 'secret'" in done.output
    assert 'term = "2026-fall"' in settings.read_text("utf-8")


# --- a student's own machine ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_public_checks_know_the_values_of_the_copy(
    run: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    solved: Solved,
    values: Callable[[str], dict[str, Value]],
    warm_workers: object,
    other_checks: None,
) -> None:
    folder = tmp_path / "own"
    assert run("template", "heads", "--student", SECOND, "--out", folder).exit_code == 0
    monkeypatch.chdir(folder)
    for student_id, code in ((SECOND, 0), (FIRST, 1)):
        Path("homework.py").write_text(solved(values(student_id)), encoding="utf-8")
        done = CliRunner().invoke(cli, ["check"], prog_name="grader")
        assert done.exit_code == code, done.output
        assert "The values of this copy: heads = 8, pooling = mean" in done.output
        plugins = ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-s", "--import-mode=importlib"]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            assert pytest.main(plugins) == code, said.getvalue()  # the same by bare pytest
    Path("variant.json").unlink()
    done = CliRunner().invoke(cli, ["check"], prog_name="grader")
    assert (
        done.exit_code == 2 and "variant.json, which tells the values of this copy, is missing" in done.output
    )
    Path("variant.json").write_text('{"values": {"heads": null}}', encoding="utf-8")
    done = CliRunner().invoke(cli, ["check"], prog_name="grader")
    assert done.exit_code == 2 and "variant.json cannot be read. Copy it back" in done.output


# --- the grader, graded -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_choice_can_be_validated(
    course: Course, run: Callable[..., Result], on_warm_hosts: None
) -> None:
    """A check that is right for this term's values alone passes, and is found with the others."""
    done = run("validate", "heads", "--only", "reference", "--jobs", 2)
    assert done.exit_code == 0, done.output
    assert "(heads = 2, pooling = mean): 1" in done.output and done.output.count("reference full") == 1
    checks = course.reference("heads") / "checks" / "test_public.py"
    text = checks.read_text(encoding="utf-8")
    assert "16 // heads" in text
    checks.write_text(text.replace("16 // heads", "8 if heads == 2 else 4"), encoding="utf-8")
    assert run("validate", "heads", "--only", "reference", "--jobs", 2).exit_code == 0
    done = run("validate", "heads", "--only", "reference", "--jobs", 2, "--all-variants")
    assert done.exit_code == 1, done.output
    assert "heads: 1 of 4 sets of values fail" in done.output
    assert done.output.rstrip().endswith("heads = 8, pooling = mean")


def test_values_can_be_validated_in_this_process(
    course: Course, run: Callable[..., Result], warm_workers: object
) -> None:
    done = run("validate", "heads", "--only", "interleaved", "--all-variants", "--debug")
    assert "heads: all 4 pass" in done.output, done.output


def test_a_check_that_asks_for_an_unknown_value_is_the_instructors_fault(
    course: Course, run: Callable[..., Result], warm_workers: object
) -> None:
    checks = course.reference("heads") / "checks" / "test_public.py"
    text = checks.read_text(encoding="utf-8")
    checks.write_text(text.replace('variant["heads"]', 'variant["head"]'), encoding="utf-8")
    done = run("validate", "heads", "--only", "reference", "--debug")
    told = " ".join(done.output.split())
    assert done.exit_code == 1 and "breaks on reference" in told
    assert "the variant's 'head', but [variant] has 'heads', 'pooling'. Correct the name" in told


# --- a new term -------------------------------------------------------------------------------------------


def test_a_term_changes_one_line_and_the_templates(course: Course, run: Callable[..., Result]) -> None:
    settings = course.root / "course.toml"
    before = settings.read_text(encoding="utf-8")
    (course.root / "gradebook.sqlite").write_bytes(b"not to be touched")
    done = run("new-term", "2028-spring")
    assert done.exit_code == 0, done.output
    assert "The course is in the term 2028-spring, after 2026-fall." in done.output
    assert "pooling is max; last term it was mean" in done.output
    assert "heads is drawn anew for each student: grader template heads --students" in done.output
    assert "its deadline, 2020-01-31 23:59+03:30, is in the past" in done.output
    assert settings.read_text(encoding="utf-8") == before.replace("2026-fall", "2028-spring")
    homework = (course.root / "template" / "heads" / "homework.py").read_text(encoding="utf-8")
    assert 'POOLING = "max"' in homework and "HEADS = 2" in homework
    assert (course.root / "gradebook.sqlite").read_bytes() == b"not to be touched"
    again = run("new-term", "2028-spring")
    assert again.exit_code == 0 and "its values are the last term's" in again.output


def test_a_course_without_a_term_gets_the_line(course: Course, run: Callable[..., Result]) -> None:
    settings = course.root / "course.toml"
    text = settings.read_text(encoding="utf-8")
    line = 'term = "2026-fall"  # the values are this term\'s\n'
    assert line in text
    bare = text.replace(line, "").replace("[sandbox]", "# term = nothing\n[sandbox]")
    settings.write_text(bare, encoding="utf-8")
    assert run("new-term", "2028-spring").exit_code == 0
    title = 'title = "A course that draws values"\n'
    changed = settings.read_text(encoding="utf-8")
    assert changed == bare.replace(title, f'{title}term = "2028-spring"\n')


@pytest.mark.parametrize("term", ["", "a:b", 'a"', "-"])
def test_what_is_no_term_is_refused(course: Course, run: Callable[..., Result], term: str) -> None:
    before = (course.root / "course.toml").read_bytes()
    done = run("new-term", "--", term)
    assert done.exit_code == 2 and "which is not a name of a term" in done.output
    assert (course.root / "course.toml").read_bytes() == before


def test_a_malformed_assignment_keeps_everything_as_it_is(course: Course, run: Callable[..., Result]) -> None:
    before = (course.root / "course.toml").read_bytes()
    readme = course.reference("heads") / "student_readme.md"
    readme.write_text("{{head}}", encoding="utf-8")
    done = run("new-term", "2028-spring")
    assert done.exit_code == 2 and "student_readme.md:1: '{{head}}' names no value" in done.output
    assert (course.root / "course.toml").read_bytes() == before and not (course.root / "template").exists()
