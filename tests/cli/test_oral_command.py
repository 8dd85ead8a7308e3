"""`grader oral`: from the draw to the released grade, and what each reader sees of it meanwhile."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.analyzed_program import Note
from grader.domain.assignment import Assignment
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.reports.whole_class.similarity_record import PairRecord, SimilarityRecord, record_text

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RIGHT, WRONG, ODD = "400101201", "400101202", "400101203"
SOURCE = """\
class Attention(nn.Module):
    def forward(self, x):
        weights = scores.softmax(dim=-1)  # <script>alert(1)</script>
        return weights @ v
"""
WORKSHEET = "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n" + "".join(
    f"Participant {number},S,{student},,100.00,-\n" for number, student in enumerate((RIGHT, WRONG, ODD), 17)
)


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "head")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


@pytest.fixture(scope="module")
def marked(
    tmp_path_factory: pytest.TempPathFactory,
    course_root: Path,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
) -> Path:
    """Three students, all marked; one of them prints text that is executed."""
    folder = tmp_path_factory.mktemp("marked") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADER_COURSE", str(course_root))
        patch.setenv("GRADER_BY", "head")
        patch.delenv("GRADER_GRADEBOOK", raising=False)
        mark(folder, assignment, class_evidence)
    return folder


@pytest.fixture
def out(tmp_path: Path, marked: Path) -> Path:
    """The results of the three, for one test."""
    return shutil.copytree(marked, tmp_path / "results")


def mark(folder: Path, assignment: Assignment, class_evidence: Callable[..., Any]) -> None:
    """Keep their evidence, and give each a mark in every place."""
    odd = (Note("homework.py:3: text is executed; a person should look.", ask_person=True),)
    check = next(spec.id for spec in assignment.checks if spec.component == "Attention")
    with Gradebook(folder, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, folder, "ta1")
        for student, more in ((RIGHT, {}), (WRONG, {"failed": [check]}), (ODD, {"notes": odd})):
            evidence = class_evidence(student, **more)
            keeper.kept(replace(evidence, source={"homework.py": SOURCE}), {}, NOW)
    said("regrade", folder)
    for student in (RIGHT, WRONG, ODD):
        for target in assignment.mark_targets():
            if assignment.item_of(target) is None and target not in (
                "model",
                "training",
                "evaluation",
                "visualization",
            ):
                said("marks", "set", folder, student, target, "2", "--why", "Read.")


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def page(out: Path, student: str) -> str:
    return (out / "students" / student / "report.html").read_text("utf-8")


def record(out: Path, student: str) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == student)
    return found


def row(out: Path, student: str) -> dict[str, str]:
    with (out / "scores.csv").open(encoding="utf-8") as file:
        return next(one for one in csv.DictReader(file) if one["student_id"] == student)


def test_from_the_draw_to_the_grade(out: Path, tmp_path: Path) -> None:
    worksheet = tmp_path / "w.csv"
    worksheet.write_text(WORKSHEET)
    export = ("export", "moodle-worksheet", out, "--into", worksheet)
    assert "Nobody was picked" in said("oral", out)
    told = said("oral", out, "--share", "0.3", "--seed", "dice")
    assert f"{ODD}  code: homework.py:3: text is executed" in told or f"{ODD}  drawn; code:" in told
    assert "note: the submissions were not compared" in told
    assert "The draw has the seed 'dice', a share of 0.3, and 3 to ask." in told
    state = said("oral", out)
    assert f"{ODD}  to be asked." in state and state.endswith("to be asked, 0 to be ruled on.\n")
    held = record(out, ODD)
    assert (held["total"], held["oral_check"], row(out, ODD)["total"]) == (None, "pending", "")
    refused = said(*export, "--to", tmp_path / "x.csv", code=2)
    assert f"{ODD}: an oral check is pending" in refused and not (tmp_path / "x.csv").exists()
    said(*export, "--to", tmp_path / "held.csv", "--partial")
    rows = csv.DictReader((tmp_path / "held.csv").read_text("utf-8").splitlines())
    grades = {one["ID number"]: one["Grade"] for one in rows}
    assert grades[ODD] == "", "left out, and no zero"
    said("publish", out, "--to", tmp_path / "pages", code=2)
    assert "An oral check holds the grade" in (out / "index.html").read_text("utf-8")
    failed = said("oral", out, "--outcome", ODD, "failed", "--why", "Could not say what runs.")
    assert "held until `grader rule` says what follows" in failed
    assert f"{ODD}  failed (head: Could not say what runs), to be ruled on" in said("oral", out)
    assert record(out, ODD)["total"] is None
    said("rule", out, ODD, "--why", "Not the student's own.")
    assert record(out, ODD)["total"] == 0
    said("oral", out, "--outcome", ODD, "none", "--why", "It was another student.")
    assert record(out, ODD)["total"] is None
    said("oral", out, "--outcome", ODD, "passed", "--why", "Explained it.")
    assert record(out, ODD)["total"] == record(out, RIGHT)["total"] or record(out, RIGHT)["total"] is None
    history = said("history", out, ODD)
    assert re.search(r"oral +head +picked", history) and re.search(r"oral +head +taken back", history)
    assert re.search(r"oral +head +passed\. Explained it", history)


def test_the_students_page_tells_that_and_never_why(out: Path) -> None:
    said("oral", out, "--share", "0", "--without", "code")
    assert "oral" not in page(out, ODD).lower()
    said("oral", out, "--share", "0")
    held = page(out, ODD)
    assert "An oral check is pending" in held and "withheld" in held
    body = held[held.index("<body>") :].lower()
    for told in ("flag", "suspic", "drawn", "picked", "grader oral"):
        assert told not in body
    assert "oral" not in page(out, RIGHT).lower()
    said("oral", out, "--outcome", ODD, "failed", "--why", "Knew nothing of it.")
    assert page(out, ODD) == held, "how it went is not told before somebody has ruled"
    said("rule", out, ODD, "--why", "It was written by somebody else.")
    assert "After the oral check: 0 points" in page(out, ODD) and "somebody else" in page(out, ODD)
    assert "Knew nothing" not in page(out, ODD)
    said("rule", out, ODD, "--lift", "--why", "A second talk went well.")
    assert "After the oral check, the total counts" in page(out, ODD)


def test_each_picked_student_gets_a_sheet_with_the_own_code_and_notes_apart(out: Path) -> None:
    said("oral", out, "--students", f"{RIGHT}, {WRONG}", "--why", "As announced.")
    folder = out / "oral"
    together = (folder / "questions.html").read_text("utf-8")
    assert together.count('<article class="sheet"') == 2
    one = (folder / "students" / WRONG / "questions.html").read_text("utf-8")
    assert "weights = scores.softmax(dim=-1)" in one and WRONG in one and RIGHT not in one
    assert "&lt;script&gt;" in one and "<script" not in one
    notes = (folder / "students" / WRONG / "notes.html").read_text("utf-8")
    assert "chosen: As announced." in notes and "As announced" not in one and "Not for the student" not in one
    assert "2\N{NO-BREAK SPACE}sheets" in said("oral", out, "--sheets")
    assert (folder / "questions.html").read_text("utf-8") == together, "the same work, the same questions"
    said("oral", out, "--outcome", WRONG, "passed", "--why", "Fine.")
    said("oral", out, "--sheets")
    assert (folder / "questions.html").read_text("utf-8").count('<article class="sheet"') == 1
    assert (folder / "students" / WRONG / "questions.html").is_file(), "what was asked stays"


def test_a_pair_is_a_reason_for_both(out: Path, assignment: Assignment) -> None:
    pairs = [PairRecord(one=RIGHT, other=WRONG, before=False, says="98 % and 97 % of their own code")]
    found = SimilarityRecord(
        assignment=assignment.id, compared_at=NOW, submissions=3, threshold=0.6, pairs=pairs
    )
    (out / "similarity.json").write_text(record_text(found), encoding="utf-8")
    told = said("oral", out, "--share", "0", "--without", "code")
    assert "not compared" not in told and "2\N{NO-BREAK SPACE}students picked" in told
    assert f"{RIGHT}  similar: 98 % and 97 % of their own code, with {WRONG}." in told
    assert f"{WRONG}  similar: 98 % and 97 % of their own code, with {RIGHT}." in told


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--seed", "x"), "Add --share"),
        (("--without", "code"), "Add --share"),
        (("--outcome", RIGHT, "passed", "--share", "0.1", "--why", "x"), "a command of its own"),
        (("--why", "x"), "--why is the reason for"),
        (("--students", RIGHT), "Say why"),
        (("--students", "4001", "--why", "x"), "There is no student '4001'"),
        (("--outcome", RIGHT, "passed", "--why", "x"), "was not picked"),
        (("--outcome", RIGHT, "passed"), "Say why"),
    ],
)
def test_what_is_contradictory_is_one_sentence(
    graded_class: Path, options: tuple[str, ...], sentence: str
) -> None:
    assert sentence in said("oral", graded_class, *options, code=2)


def test_shares_and_outcomes_are_what_they_are(graded_class: Path) -> None:
    assert "1.5 is not in the range" in said("oral", graded_class, "--share", "1.5", code=2)
    assert "'well' is not one of" in said(
        "oral", graded_class, "--outcome", RIGHT, "well", "--why", "x", code=2
    )
