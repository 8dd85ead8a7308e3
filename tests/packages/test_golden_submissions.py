"""Golden submissions have the same points in a package as by `grader grade`.

The package's own process is run in `test_package_runs.py`; here its hosts are those that the tests share.
Before a release all ten, of all assignments, are tried, also by the package's own script, as an ordinary user
and as root of a container: `ALL_GOLDEN=1 pytest -m slow tests/packages/test_golden_submissions.py`, which
takes some ten minutes of processor time.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packages.conftest import SECRET, laid_out
from packages.schemas import require_valid
from submissions import build
from submissions.example_class import build_example_class

from grader.course.locate import Course, located_course
from grader.course.reference_solution import solved_source
from grader.domain.assignment_versions import DrawnValue, Value
from grader.packages.graded_submission import grade_into

ALL = bool(os.environ.get("ALL_GOLDEN"))
ASSIGNMENTS = ("vit_defects", "vit_cifar10", "vit_finetune") if ALL else ("vit_defects",)
UPLOADS = ("missing_scale", "syntax_error", *(("good_notebook", "bare_template") if ALL else ()))
MOST_EXAMPLES = 3
DRAWN = Path(__file__).parents[1] / "courses" / "drawn"


def golden(assignment: str, folder: Path) -> list[Path]:
    """The folders of some submissions, by student."""
    if assignment == "vit_defects":
        behaviours = Path(build.__file__).parent
        return [build.build(behaviours / name, folder) for name in UPLOADS]
    return build_example_class(folder, assignment)[:MOST_EXAMPLES]


def in_package(root: Path, submission: Path, folder: Path) -> dict[str, Any]:
    """What the package below a root makes of a submission."""
    handed_in = root / "submission"
    handed_in.mkdir(exist_ok=True)
    for path in handed_in.iterdir():
        path.unlink()
    for path in submission.iterdir():
        (handed_in / path.name).write_bytes(path.read_bytes())
    outcome = folder / "outcome.json"
    grade_into("gradescope", root, outcome)
    document = json.loads(outcome.read_text("utf-8"))
    require_valid("gradescope", document)
    return document


def points_by_command(out: Path) -> dict[str, dict[str, float | None]]:
    """What `grader grade` made of a class: student -> item -> points."""
    records = json.loads((out / "results.json").read_text("utf-8"))["submissions"]
    return {
        record["student_id"]: {item["id"]: item["points"] for item in record["items"]} for record in records
    }


def items_of(document: dict[str, Any]) -> dict[str, float | None]:
    """The points of each item in a package's results; None of those that are open."""
    return {
        test["tags"][0]: test.get("score") for test in document["tests"] if len(test.get("tags", ())) == 1
    }


@pytest.mark.slow
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_each_item_has_the_points_of_grader_grade(
    made: Callable,
    grader: Callable[..., Result],
    course_root: Path,
    tmp_path: Path,
    root_folder: Path,
    assignment: str,
) -> None:
    package = made("gradescope", assignment=assignment)
    package.unpack(tmp_path / "source")
    submissions = golden(assignment, tmp_path / "class")
    for folder in tmp_path / "class", *submissions:
        assert folder.is_dir()
    words = ("grade", tmp_path / "class", "--assignment", assignment, "--no-train", "--jobs", 1)
    done = grader("--course", course_root, *words, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    by_command = points_by_command(tmp_path / "out")
    for submission in submissions:
        document = in_package(tmp_path, submission, tmp_path)
        assert items_of(document) == by_command[submission.name], submission.name
    for how in ("user", "container") if ALL and os.geteuid() == 0 else ():
        tree = laid_out(package, root_folder / how)
        for submission in submissions:
            shutil.rmtree(tree.submission)
            shutil.copytree(submission, tree.submission)
            document = tree.graded(how=how)
            require_valid("gradescope", document)
            assert items_of(document) == by_command[submission.name], (how, submission.name)


@pytest.mark.slow
def test_a_students_own_values_are_those_of_grader_grade(
    made: Callable, grader: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with the values of one of them: right for that one, and wrong for another."""
    monkeypatch.setenv("GRADER_SECRET", SECRET)
    course = located_course(DRAWN)
    stated = course.assignment("heads").variant
    ids = [f"40010{number}" for number in range(1000, 1010)]
    first, other = (
        ids[0],
        next(each for each in ids if values(course, stated, each) != values(course, stated, ids[0])),
    )
    text = (course.reference("heads") / "solution.py").read_text("utf-8")
    source = solved_source(text, "solution.py", values(course, stated, first))
    for student in (first, other):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / f"{student}_Heads.py").write_text(source, "utf-8")
    words = ("grade", tmp_path / "class", "--assignment", "heads", "--no-train", "--jobs", 1)
    done = grader("--course", DRAWN, *words, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    by_command = points_by_command(tmp_path / "out")
    assert by_command[first]["parts"] == 10 > by_command[other]["parts"]
    made("gradescope", assignment="heads", course=DRAWN).unpack(tmp_path / "source")
    for student in (first, other):
        document = in_package(tmp_path, tmp_path / "class" / student, tmp_path)
        assert items_of(document) == by_command[student], student
    (tmp_path / "nobody").mkdir()
    (tmp_path / "nobody" / "heads.py").write_text(source, "utf-8")
    nobody = in_package(tmp_path, tmp_path / "nobody", tmp_path)
    assert "Name your files like `<StudentID>_Heads`" in nobody["output"] and "score" not in nobody


def values(course: Course, stated: tuple[DrawnValue, ...], student_id: str) -> dict[str, Value]:
    """What was drawn for a student."""
    return course.values("heads", stated, student_id)


@pytest.mark.slow
def test_an_empty_submission_leaves_a_valid_file(
    made: Callable, on_warm_hosts: None, small_course: Path, tmp_path: Path
) -> None:
    made("gradescope", assignment="heads", course=small_course).unpack(tmp_path / "source")
    (tmp_path / "empty").mkdir()
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "link.py").symlink_to("/etc/passwd")
    document = in_package(tmp_path, tmp_path / "empty", tmp_path)
    assert "No code was handed in" in document["output"]
    assert [test["score"] for test in document["tests"] if "score" in test] == [0]  # of 0 points
