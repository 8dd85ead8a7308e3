"""Golden submissions have the same points in a package as by `grader grade`.

The package's own process is run in `test_package_runs.py`; here its hosts are those that the tests share. All
ten, of all assignments, take four minutes of processor time, so they are tried before a release:
`ALL_GOLDEN=1 pytest -m slow tests/packages/test_golden_submissions.py`.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packages.schemas import require_valid
from submissions import build
from submissions.example_class import build_example_class

from grader.packages.graded_submission import grade_into

ALL = bool(os.environ.get("ALL_GOLDEN"))
ASSIGNMENTS = ("vit_defects", "vit_cifar10", "vit_finetune") if ALL else ("vit_defects",)
UPLOADS = ("missing_scale", "syntax_error", *(("good_notebook", "bare_template") if ALL else ()))
MOST_EXAMPLES = 3


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


@pytest.mark.slow
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_each_item_has_the_points_of_grader_grade(
    made: Callable, grader: Callable[..., Result], course_root: Path, tmp_path: Path, assignment: str
) -> None:
    made("gradescope", assignment=assignment).unpack(tmp_path / "source")
    submissions = golden(assignment, tmp_path / "class")
    for folder in tmp_path / "class", *submissions:
        assert folder.is_dir()
    words = ("grade", tmp_path / "class", "--assignment", assignment, "--no-train", "--jobs", 1)
    done = grader("--course", course_root, *words, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["submissions"]
    by_command = {
        record["student_id"]: {item["id"]: item["points"] for item in record["items"]} for record in records
    }
    for submission in submissions:
        document = in_package(tmp_path, submission, tmp_path)
        items = {
            test["tags"][0]: test.get("score") for test in document["tests"] if len(test.get("tags", ())) == 1
        }
        assert items == by_command[submission.name], submission.name


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
