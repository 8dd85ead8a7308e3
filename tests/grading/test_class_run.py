"""The example uploads, each with what must come of it, through the whole grader."""

import csv
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.gradebook import Gradebook
from grader.grading.concurrent_work import GradingStage, Progress
from grader.language import language
from grader.results.revision import revised
from tests.english_left import english_left, sentences_of

SUBMISSIONS = Path(__file__).parents[1] / "submissions"
UPLOADS = {
    path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in SUBMISSIONS.glob("*/upload.toml")
}
CHECKED_ITEMS = ("model", "evaluation", "visualization")
# graded at every change: one that is right, one with a mistake, and one for each thing that stops the rest
QUICK = {
    "good_script",
    "missing_scale",
    "bare_template",
    "forges",
    "missing_file",
    "syntax_error",
    "empty_file",
}


def about(*behaviors: str) -> list[Any]:
    """Parameters of a test, each about one upload; those of a slow one are slow."""
    return [
        pytest.param(one, marks=[pytest.mark.uploads(one), *([] if one in QUICK else [pytest.mark.slow])])
        for one in behaviors
    ]


def result_of(behavior: str, results: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = results[UPLOADS[behavior]["upload"]["student_id"]]
    return found


def points(result: dict[str, Any]) -> dict[str, Any]:
    return {item["id"]: item["points"] for item in result["items"]}


def failing(result: dict[str, Any]) -> set[str]:
    return {found["component"] for found in result["findings"] if found["status"] != "passed"}


@pytest.mark.parametrize("behavior", about(*sorted(UPLOADS)))
def test_all_that_is_said_of_it_can_be_said_in_persian(
    behavior: str, results: dict[str, Any], assignment: Assignment
) -> None:
    pytest.importorskip("babel")
    persian = language("fa", (assignment.folder / "language",))
    said = dict.fromkeys(sentences_of(result_of(behavior, results)))
    assert {text: left for text in said if (left := english_left(text, persian))} == {}


@pytest.mark.parametrize("behavior", about(*sorted(UPLOADS)))
def test_upload_comes_to_what_it_says(behavior: str, results: dict[str, Any]) -> None:
    expected = UPLOADS[behavior]["expected"]
    result = result_of(behavior, results)
    assert result["status"] == expected["status"], result["reason"]
    if expected["status"] in ("graded", "incomplete") and "failing" in expected:
        messages = [found["message"] for found in result["findings"] if found["status"] != "passed"]
        assert failing(result) == set(expected["failing"]), messages
    if "diagnosis" in expected:
        assert expected["diagnosis"] in {found["diagnosis"] for found in result["findings"]}
    if "checkpoint" in expected:
        assert result["checkpoint"]["status"] == expected["checkpoint"], result["checkpoint"]


@pytest.mark.parametrize(
    "behavior", about("good_script", "good_notebook", "near_names", "wrong_checkpoint", "unused_import")
)
def test_right_work_earns_every_automatic_point(behavior: str, results: dict[str, Any]) -> None:
    result = result_of(behavior, results)
    assert [points(result)[item] for item in CHECKED_ITEMS] == [35, 5, 10]
    assert result["training"]["outcome"] == "completed"


@pytest.mark.uploads("bare_template")
def test_bare_template_earns_nothing_and_is_told_where_to_start(
    results: dict[str, Any], run_of_class: tuple[Path, list[Progress]]
) -> None:
    result = result_of("bare_template", results)
    assert result["total"] == 0
    assert {found["diagnosis"] for found in result["findings"] if found["status"] != "passed"} == {
        "not_implemented"
    }
    page = (run_of_class[0] / "students" / result["student_id"] / "report.html").read_text("utf-8")
    assert "start with PreNorm" in page


@pytest.mark.uploads("missing_scale")
def test_one_mistake_costs_half_of_its_component(results: dict[str, Any]) -> None:
    # the proof weighs half of Attention's 8 points, and a public check that shows the same a little
    assert 30.5 < points(result_of("missing_scale", results))["model"] < 31


@pytest.mark.slow
@pytest.mark.uploads("prebuilt_vit")
def test_a_prebuilt_model_costs_the_model_item_only(results: dict[str, Any]) -> None:
    earned = points(result_of("prebuilt_vit", results))
    assert earned["model"] == 0
    assert earned["evaluation"] == 5 and earned["visualization"] == 10


@pytest.mark.slow
@pytest.mark.uploads("hangs")
def test_a_hang_costs_its_component_and_the_training(results: dict[str, Any]) -> None:
    result = result_of("hangs", results)
    assert points(result) == {
        **points(result),
        "model": 27,
        "evaluation": 5,
        "visualization": 10,
        "training": 0,
    }
    assert [found["diagnosis"] for found in result["findings"] if found["status"] == "failed"] == ["hangs"]
    assert all(
        "did not return within 10 s" in f["message"] for f in result["findings"] if f["status"] == "skipped"
    )


@pytest.mark.slow
@pytest.mark.uploads("hanging_plot")
def test_a_plot_that_hangs_does_not_keep_the_model_from_being_trained(results: dict[str, Any]) -> None:
    result = result_of("hanging_plot", results)
    assert points(result)["visualization"] == 5
    assert result["training"]["outcome"] == "completed"


@pytest.mark.uploads("forges")
def test_a_forger_gets_nothing_and_writes_nothing(
    results: dict[str, Any], run_of_class: tuple[Path, list[Progress]], class_folder: Path
) -> None:
    result = result_of("forges", results)
    assert result["total"] == 0
    for folder in (run_of_class[0], class_folder):
        assert not [path for path in folder.rglob("results.json") if path.parent != run_of_class[0]]


@pytest.mark.uploads("missing_file")
def test_a_missing_file_withholds_the_total_but_not_the_points(results: dict[str, Any]) -> None:
    result = result_of("missing_file", results)
    assert result["total"] is None and result["missing"] == ["report"]
    assert points(result)["model"] == 35


@pytest.mark.uploads("syntax_error", "empty_file")
def test_what_cannot_be_read_is_refused_with_a_sentence(results: dict[str, Any]) -> None:
    refused = result_of("syntax_error", results)
    assert refused["total"] is None and "Homework.py:237: is not correct Python" in refused["reason"]
    assert "empty" in result_of("empty_file", results)["reason"]


@pytest.mark.parametrize("behavior", about("good_notebook", "good_script", "syntax_error", "missing_file"))
def test_the_pdf_is_shown_whatever_became_of_the_code(
    behavior: str, run_of_class: tuple[Path, list[Progress]]
) -> None:
    upload = UPLOADS[behavior]["upload"]
    folder = run_of_class[0] / "students" / upload["student_id"]
    handed_in = "report" not in upload.get("leave_out", ())
    assert handed_in == (behavior != "missing_file")
    assert (folder / "answers.html").is_file() == (folder / "answers.pdf").is_file() == handed_in
    if handed_in:
        page = (folder / "answers.html").read_text("utf-8")
        assert page.count('<img src="data:image/webp;base64,') == 1 and "Not all of it is shown" not in page
        assert (folder / "answers.pdf").read_bytes().startswith(b"%PDF-")


@pytest.mark.uploads("good_script", "syntax_error")
def test_every_grade_carries_its_isolation(results: dict[str, Any]) -> None:
    levels = {entry["sandbox"]["level"] for entry in results.values() if entry["findings"]}
    assert levels <= {"strict", "standard"} and levels


@pytest.mark.uploads("good_script", "syntax_error")
def test_every_check_left_exactly_one_finding(results: dict[str, Any], assignment: Assignment) -> None:
    expected = [spec.id for spec in assignment.checks]
    for entry in results.values():
        if entry["findings"]:
            assert [found["check"] for found in entry["findings"]] == expected


@pytest.mark.uploads("good_script")
def test_progress_goes_through_the_stages(run_of_class: tuple[Path, list[Progress]]) -> None:
    told = [progress for progress in run_of_class[1] if progress.student_id == "400101201"]
    stages = list(dict.fromkeys(progress.stage for progress in told))
    assert stages == [
        GradingStage.READING,
        GradingStage.CHECKS,
        GradingStage.TRAINING,
        GradingStage.CHECKPOINT,
        GradingStage.DONE,
    ]
    assert any(progress.text.startswith("epoch 3 of 12") for progress in told)


@pytest.mark.uploads("good_script", "syntax_error")
def test_tables_agree(run_of_class: tuple[Path, list[Progress]], results: dict[str, Any]) -> None:
    with (run_of_class[0] / "scores.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert rows.keys() == results.keys()
    for student_id, row in rows.items():
        total = results[student_id]["total"]
        assert row["total"] == ("" if total is None else f"{total:g}")


@pytest.mark.uploads("good_script", "syntax_error")
def test_regrading_runs_nothing_and_changes_nothing(
    run_of_class: tuple[Path, list[Progress]], results: dict[str, Any], assignment: Assignment
) -> None:
    before = (run_of_class[0] / "results.json").read_text("utf-8")
    with Gradebook(run_of_class[0]) as book:
        revision = revised(
            assignment,
            book,
            run_of_class[0],
            who="ta1",
            cause="regrade",
            clock=lambda: datetime(2026, 2, 3, tzinfo=UTC),
        )
    assert revision.changes == () and len(revision.results) == len(results)
    assert (run_of_class[0] / "results.json").read_text("utf-8") == before


def test_the_secret_split_is_not_the_students(course: Course, assignment: Assignment) -> None:
    assert course.split_seed != assignment.data.student_seed
