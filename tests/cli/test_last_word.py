"""`grader rule` and `grader accept`: nothing holds a class for ever, what people give counts and shows."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.domain.edit import OwnerAssigned, Ruled, RunChosen
from grader.domain.evidence import Evidence
from grader.domain.submission import Lacking, Origin, RefusedFile, Role
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.intake import Uploads
from grader.reports.results_json.results_schema import RosterRecord
from grader.results.class_files import write_class
from grader.results.current_state import (
    DownloadAccount,
    current_downloads,
    keep_download_account,
    results_now,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RIGHT, REFUSED, FAILED, WORD = "400101301", "400101309", "400101310", "400101311"
LISTED, LACKING, TYPO = "400101361", "400101362", "40010136"
EVERYBODY = (RIGHT, REFUSED, FAILED, WORD, LISTED, LACKING)
PARTS = ("image_to_output", "patches_to_sequence", "multi_head_attention", "class_token")
BY_PERSON = ("report_quality", "q6", "q7", "q8", "q9", *(f"q10.{part}" for part in PARTS))
AUTOMATIC = ("model", "training", "evaluation", "visualization")
WHY = ("--why", "By the rules of the course.")


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


@pytest.fixture
def keep(assignment: Assignment, tmp_path: Path) -> Callable[..., None]:
    """Grade further evidence into the results folder."""

    def kept(*evidence: Evidence) -> None:
        out = tmp_path / "results"
        with Gradebook(out, assignment_id=assignment.id) as book:
            keeper = Keeper(assignment, book, out, "ta1")
            for one in evidence:
                keeper.kept(one, {}, NOW)
            snapshot = book.snapshot()
            downloads = current_downloads(book, out, snapshot)
            write_class(assignment, results_now(assignment, snapshot), out, NOW, downloads)

    return kept


@pytest.fixture
def out(
    tmp_path: Path,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
    keep: Callable[..., None],
) -> Path:
    """A class with one of each: right, refused, failed in the grader, a Word file alone, and two absent."""
    folder = tmp_path / "results"
    nothing = {"findings": (), "tuned": ()}
    uploads = Uploads((), lacking=(Lacking(LACKING, "Gradescope", "submission_62", f"Gradescope:{LACKING}"),))
    account = DownloadAccount.of(uploads, "export.zip")
    roster = RosterRecord(source="class.csv", students=list(EVERYBODY), missing=[], unlisted=[], notes=[])
    account = replace(account, download=account.download.model_copy(update={"roster": roster}))
    with Gradebook(folder, assignment_id=assignment.id) as book:
        keep_download_account(book, folder, account, who="ta1", when=NOW)
    keep(
        class_evidence(RIGHT),
        replace(
            class_evidence(REFUSED, status="refused", reason="homework.py:3: is not correct Python."),
            **nothing,
        ),
        replace(class_evidence(FAILED, status="engine_error", reason="The grader failed."), **nothing),
        replace(
            class_evidence(
                WORD,
                missing=(Role.CODE, Role.CHECKPOINT, Role.REPORT),
                refused_files=(
                    RefusedFile("report.docx", "report.docx: was not asked for."),
                    RefusedFile("old.py", "old.py: is empty."),
                ),
            ),
            **nothing,
        ),
    )
    return folder


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def told(out: Path, student: str) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == student)
    return found


def page(out: Path, student: str) -> str:
    return (out / "students" / student / "report.html").read_text("utf-8")


def row(out: Path, student: str) -> dict[str, str]:
    with (out / "scores.csv").open(encoding="utf-8") as file:
        return next(one for one in csv.DictReader(file) if one["student_id"] == student)


def mark(out: Path, student: str, points: float, items: tuple[str, ...] = BY_PERSON) -> None:
    """Give so many points for each item."""
    for item in items:
        said("marks", "set", out, student, item, points, "--why", "Read.")


def settle(out: Path) -> None:
    """Everything but the refused submission."""
    mark(out, RIGHT, 2)
    mark(out, FAILED, 1, (*AUTOMATIC, *BY_PERSON))
    said("rule", out, WORD, LISTED, LACKING, *WHY)


def exported(out: Path, tmp_path: Path) -> dict[str, str]:
    """Student -> the grade in Moodle's worksheet."""
    sheet = tmp_path / "Grades.csv"
    rows = "".join(f"Participant {n},{one},,100,-\n" for n, one in enumerate(EVERYBODY, 10))
    sheet.write_text(f"Identifier,ID number,Grade,Maximum Grade,Last modified (grade)\n{rows}", "utf-8")
    said("export", "moodle-worksheet", out, "--into", sheet)
    with (out / "exports/Grades.csv").open(encoding="utf-8") as file:
        return {one["ID number"]: one["Grade"] for one in csv.DictReader(file)}


# --- refused --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_refused_notebook_with_a_marked_report_counts_and_shows(out: Path, tmp_path: Path) -> None:
    """D2: its marks count for nothing, and it holds the class for ever."""
    settle(out)
    mark(out, REFUSED, 3, ("q6",))
    assert "Nothing in it could be graded" in said("publish", out, "--to", tmp_path / "p", code=2)
    output = said("rule", out, REFUSED, "--lift", *WHY)
    assert f"{REFUSED}: refused, 5 decided, 95 awaiting -> 3 of 70 decided, 30 awaiting" in output
    assert "Marks that people give" in said("publish", out, "--to", tmp_path / "p", code=2)
    waiting = said("export", "gradescope", out, code=2)
    assert f"{REFUSED}: awaiting report_quality, q7" in waiting and RIGHT not in waiting
    sheet = tmp_path / "marks.csv"
    said("marks", "export", out, sheet)
    with sheet.open(encoding="utf-8-sig") as file:
        assert {one["item"] for one in csv.DictReader(file) if one["student_id"] == REFUSED} == set(BY_PERSON)
    mark(out, REFUSED, 2, BY_PERSON[2:])
    mark(out, REFUSED, 4, BY_PERSON[:1])
    entry = told(out, REFUSED)
    assert (entry["status"], entry["total"], entry["awaiting"]) == ("refused", 21, [])
    points = {item["id"]: item["points"] for item in entry["items"]}
    assert (points["q6"], points["model"]) == (3, 0)
    assert (row(out, REFUSED)["total"], row(out, REFUSED)["q6"]) == ("21", "3")
    report = page(out, REFUSED)
    assert "The code could not be graded; the rest counts" in report
    assert "Nothing in the code could be graded, so this gives no points." in report
    assert "Q6" in report and "Marked by a person." in report
    assert exported(out, tmp_path)[REFUSED] == "21"
    said("publish", out, "--to", tmp_path / "p")
    assert "Ready to hand out" in (tmp_path / "p/instructors/index.html").read_text("utf-8")


@pytest.mark.slow
def test_a_refused_one_can_be_closed_without_points(out: Path, tmp_path: Path) -> None:
    settle(out)
    said("rule", out, REFUSED, *WHY)
    assert (told(out, REFUSED)["total"], told(out, REFUSED)["awaiting"]) == (0, [])
    report = page(out, REFUSED)
    assert "could be graded: 0 points" in report and "0 of 100 points" in report
    assert "No points were given or taken" not in report
    assert exported(out, tmp_path)[REFUSED] == "0"
    said("publish", out, "--to", tmp_path / "p")


@pytest.mark.slow
def test_marks_on_every_item_need_no_rule(out: Path, tmp_path: Path) -> None:
    """D2: all items marked by hand, decided 100, and it still holds."""
    settle(out)
    mark(out, REFUSED, 2, (*AUTOMATIC, *BY_PERSON))
    assert told(out, REFUSED)["total"] == 26
    assert told(out, FAILED)["total"] == 13, "and so it is where the grader failed"
    grades = exported(out, tmp_path)
    assert (grades[REFUSED], grades[FAILED]) == ("26", "13")
    assert "People gave the points of every item" in page(out, REFUSED)
    said("publish", out, "--to", tmp_path / "p")


def test_all_are_those_that_nobody_decided_about_and_each_is_told(out: Path) -> None:
    output = said("rule", out, "--all", *WHY).splitlines()
    assert [line.partition(":")[0] for line in output[:-1]] == [REFUSED, WORD]
    assert output[-1] == "0 points for 2 of the class. 2 totals changed."
    assert told(out, FAILED)["total"] is None


def test_a_fault_of_the_grader_is_nobodys_zero(out: Path) -> None:
    before = (out / "results.json").read_bytes()
    for lift in ((), ("--lift",)):
        output = said("rule", out, FAILED, REFUSED, *lift, *WHY, code=2)
        assert f"'{FAILED}': the grader failed on it, which costs nobody points." in output
    assert (out / "results.json").read_bytes() == before


# --- nothing handed in ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_the_lms_lists_and_nobody_graded_holds_the_class(out: Path, tmp_path: Path) -> None:
    """D6: it was a line at the page's end, and the class was published without that student."""
    mark(out, RIGHT, 2)
    mark(out, FAILED, 1, (*AUTOMATIC, *BY_PERSON))
    said("rule", out, WORD, REFUSED, *WHY)
    index = (out / "index.html").read_text("utf-8")
    assert "Not ready to hand out yet" in index and 'id="lacking"' in index
    assert "Gradescope lists submission_62, which is not in the download." in index
    refusal = said("publish", out, "--to", tmp_path / "p", code=2)
    assert "Listed by the LMS, but not in its download" in refusal
    assert f"  {LACKING}: Gradescope lists submission_62" in said("export", "gradescope", out, code=2)
    said("export", "gradescope", out, "--partial")
    said("rule", out, LACKING, *WHY)
    assert 'id="lacking"' not in (out / "index.html").read_text("utf-8")
    said("publish", out, "--to", tmp_path / "p")
    assert (tmp_path / "p/students" / LACKING / "report.html").is_file()


@pytest.mark.slow
def test_nothing_by_the_deadline_is_a_grade_of_zero(out: Path, tmp_path: Path) -> None:
    settle(out)
    said("rule", out, REFUSED, *WHY)
    entry = told(out, LISTED)
    assert (entry["status"], entry["total"], entry["absent"]) == ("incomplete", 0, True)
    assert entry["missing"] == ["code", "checkpoint", "report"]
    report = page(out, LISTED)
    assert "Nothing was handed in: 0 points" in report and "0 of 100 points" in report
    assert exported(out, tmp_path)[LISTED] == "0"
    document = json.loads((out / "results.json").read_text("utf-8"))
    assert document["download"]["roster"]["missing"] == []
    index = " ".join((out / "index.html").read_text("utf-8").split())
    assert "<b>2</b> handed in nothing<br>of 6 on the list" in index and "<b>4</b> submissions" in index
    assert "nothing handed in" in said("history", out, LISTED)
    said("publish", out, "--to", tmp_path / "p")


def test_whoever_hands_in_later_is_graded_as_usual(
    out: Path, keep: Callable[..., None], class_evidence: Callable[..., Any], assignment: Assignment
) -> None:
    """The rule was about nothing, and is not about what comes later: not about its files, nor its lack."""
    said("rule", out, LISTED, LACKING, *WHY)
    keep(
        replace(class_evidence(LISTED), submission_digest="cd34"),
        replace(class_evidence(LACKING, missing=(Role.REPORT,)), submission_digest="ef56"),
    )
    assert (told(out, LISTED)["total"], told(out, LISTED)["status"]) == (62, "graded")
    assert (told(out, LACKING)["total"], told(out, LACKING)["edits"]) == (None, [])
    with Gradebook(out, assignment_id=assignment.id) as book:
        assert not any(isinstance(edit, RunChosen) for edit in book.edits()), "nothing fell"
        assert all(
            one.origin.key or one.digest in ("ab12", "cd34", "ef56") for one in book.snapshot().uploads()
        )
    said("rule", out, LACKING, *WHY)
    assert told(out, LACKING)["total"] == 0


def test_a_rule_about_an_attempt_is_not_about_the_next_one(
    out: Path, keep: Callable[..., None], class_evidence: Callable[..., Any]
) -> None:
    said("rule", out, REFUSED, *WHY)
    again = class_evidence(REFUSED, status="refused", reason="homework.py:9: is not correct Python.")
    keep(replace(again, submission_digest="cd34", findings=()))
    assert told(out, REFUSED)["total"] is None
    assert "A total that a student saw has fallen" not in (out / "index.html").read_text("utf-8")


def test_a_rule_of_an_older_version_names_no_files_and_holds(out: Path, assignment: Assignment) -> None:
    with Gradebook(out, assignment_id=assignment.id) as book:
        old = Ruled(who="ta1", when=NOW, why="No report.", student_id=WORD, counts=False, digest=None)
        assert book.append([old], [], after=book.snapshot().state)
    said("regrade", out)
    assert told(out, WORD)["total"] == 0


def test_an_id_of_nobody_is_guessed_and_changes_nothing(out: Path, assignment: Assignment) -> None:
    output = said("rule", out, TYPO, LISTED, RIGHT, *WHY, code=2)
    assert f"'{TYPO}' is neither in the gradebook nor on a class list. Did you mean 4001013" in output
    assert f"'{RIGHT}' is complete" in output
    with Gradebook(out, assignment_id=assignment.id) as book:
        assert LISTED not in book.students()


def test_an_upload_that_may_be_theirs_comes_first(
    out: Path, keep: Callable[..., None], class_evidence: Callable[..., Any], assignment: Assignment
) -> None:
    held = "upload-x-1"
    keep(replace(class_evidence(held), origin=Origin("k", "x", held, carries=LISTED), submission_digest="9"))
    with Gradebook(out, assignment_id=assignment.id) as book:
        nobodys = OwnerAssigned(
            who="ta1",
            when=NOW,
            why="Two have it.",
            student_id=held,
            listed_as=held,
            by_person=False,
            held=True,
        )
        book.add_owner_edits([nobodys])
    assert f"'{LISTED}' may have handed in" in said("rule", out, LISTED, *WHY, code=2)
    with Gradebook(out, assignment_id=assignment.id) as book:
        assert LISTED not in book.students()


# --- a file that was set aside --------------------------------------------------------------------------


def test_a_word_file_is_accepted_as_the_report_and_taken_back(out: Path) -> None:
    output = said("accept", out, WORD, "report.docx", "--why", "Word is fine this once.")
    assert output == f"report.docx counts as the report of {WORD}. 0 totals changed.\n"
    entry = told(out, WORD)
    assert (entry["missing"], entry["accepted"]) == (["code", "checkpoint"], "report.docx")
    assert [one["name"] for one in entry["refused_files"]] == ["old.py"]
    report = page(out, WORD)
    assert "A file that was set aside counts as your report" in report and "Word is fine this once" in report
    assert "report.docx: was not asked for" not in (out / "index.html").read_text("utf-8")
    said("rule", out, WORD, "--lift", *WHY)
    mark(out, WORD, 2)
    assert told(out, WORD)["total"] == 18
    said("accept", out, WORD, "none", "--why", "It is another course's.")
    assert told(out, WORD)["missing"] == ["code", "checkpoint", "report"]
    assert "A file that was set aside counts" not in page(out, WORD)
    assert "accept  ta1  report.docx counts as the report" in said("history", out, WORD)


def test_the_total_is_not_withheld_for_a_report_that_was_accepted(
    out: Path, keep: Callable[..., None], class_evidence: Callable[..., Any]
) -> None:
    packed = RefusedFile("report.rar", "report.rar: is not an archive that can be unpacked.")
    evidence = class_evidence("400101399", missing=(Role.REPORT,), refused_files=(packed,))
    keep(replace(evidence, submission_digest="cd34"))
    assert told(out, "400101399")["total"] is None
    output = said("accept", out, "400101399", "report.rar", "--why", "It holds the PDF.")
    assert "-> 62 of 65 decided, 35 awaiting" in output
    assert told(out, "400101399")["status"] == "graded"
    keep(replace(evidence, refused_files=(), submission_digest="ef56"))
    assert told(out, "400101399")["status"] == "incomplete", "the next attempt has no such file"


@pytest.mark.parametrize(
    ("student", "file", "sentence"),
    [
        (
            WORD,
            "repotr.docx",
            f"No file 'repotr.docx' of '{WORD}' was set aside. There is report.docx, old.py.",
        ),
        (WORD, "old.py", "old.py is not a report: .py is what the code is handed in as."),
        (RIGHT, "report.docx", f"'{RIGHT}' has a report already"),
        ("9", "report.docx", "there is no student '9'"),
    ],
)
def test_what_cannot_be_accepted_is_told(out: Path, student: str, file: str, sentence: str) -> None:
    output = said("accept", out, student, file, "--why", "x", code=2)
    assert sentence in output and len(output.splitlines()) == 1
