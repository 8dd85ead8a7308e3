"""Students read results: no page of theirs, and no export that reaches them, names who marked or how."""

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment
from grader.domain.edit import (
    Accepted,
    Because,
    Claimed,
    Edit,
    Extended,
    InquiryAsked,
    InquiryExplained,
    InquirySettled,
    InTime,
    Marked,
    OrallyChecked,
    OwnerAssigned,
    PickedForOral,
    Received,
    RegradeAnswered,
    RegradeAsked,
    Released,
    Reviewed,
    Ruled,
    RunChosen,
    Waived,
)
from grader.domain.inquiry import InquiryOutcome
from grader.domain.oral_check import OralFlag, OralOutcome, OralReason
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper

STUDENT, MISSING = "400101202", "400101204"
DIGEST = "ab12"
WHEN = datetime(2026, 2, 1, 12, tzinfo=UTC)
WORKSHEET = "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n" + "".join(
    f"Participant {number},S,{student},,100.00,-\n"
    for number, student in enumerate(("400101201", STUDENT, "400101203", MISSING), 17)
)
DEADLINE = "# deadline = 2026-01-31T23:59:00+03:30"
STAFF = ("Marquart", "Sheetname", "marked in", "marks import", "marks set", "--by", "Why-orally", "Suspicion")
Made = Callable[..., Edit]


@pytest.fixture
def late_course(tmp_path: Path, course_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The course with a deadline, so that what is said of it reaches students."""
    root = tmp_path / "course"
    for path in (course_root / "course.toml", *(course_root / "reference/vit_defects").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = root / path.relative_to(course_root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    file = root / "reference/vit_defects/assignment.toml"
    text = file.read_text("utf-8")
    assert text.count(DEADLINE) == 1
    file.write_text(text.replace(DEADLINE, DEADLINE[2:]) + "\n[late]\npoints_per_day = 2\n", "utf-8")
    monkeypatch.setenv("GRADER_COURSE", str(root))
    monkeypatch.setenv("GRADER_BY", "Marquart-the-publisher")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)
    return root


def said(*words: object) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == 0, result.output
    return result.output


def made(kind: type[Edit], student: str | None = STUDENT, **fields: Any) -> Any:
    """A decision by somebody with an unmistakable name."""
    name = kind.__name__.lower()
    return kind(who=f"Marquart-{name}", when=WHEN, why=f"Why-{name}.", student_id=student, **fields)


def every_kind(assignment: Assignment) -> list[Edit]:
    """Decisions of every kind, most of them twice, as haggling goes."""
    check = next(spec.id for spec in assignment.checks if spec.component == "Attention")
    marks = [
        made(
            Marked,
            target=target,
            points=value,
            sheet="Sheetname.csv",
            comment=f"Comment on {target}: {value:g}.",
        )
        for value in (1.0, 2.0)
        for target in ("report_quality", "q6", "q7", "q8", "q9", "training", *_parts(assignment))
    ]
    return [
        *marks,
        replace(marks[0], points=99.0, target="q8"),  # does not fit the rubric
        made(Marked, target="q9", points=None, sheet="Sheetname.csv"),
        made(Waived, None, check=check),
        made(Waived, None, check=check, lifted=True),
        made(Waived, None, check=check),
        made(Ruled, MISSING, counts=False, digest=None),
        made(Ruled, MISSING, counts=True, digest=None),
        made(Claimed, accuracy=0.99),
        made(Extended, deadline=WHEN - timedelta(days=1)),
        made(InTime, digest=DIGEST),
        made(Received, digest=DIGEST, moment=WHEN),
        made(RunChosen, number=2, because=Because.KEPT),
        made(OwnerAssigned, listed_as="upload-x", by_person=False, held=True),
        made(OwnerAssigned, listed_as=STUDENT, by_person=False, held=False),
        made(OwnerAssigned, listed_as="upload-x", by_person=True, held=True),
        made(OwnerAssigned, listed_as=STUDENT, by_person=True, held=False),
        made(Accepted, file="report.docx"),
        made(PickedForOral, reasons=(OralFlag(OralReason.SIMILAR, "Suspicion."),), seed="", share=None),
        made(PickedForOral, MISSING, reasons=(OralFlag(OralReason.CODE, "Suspicion."),), seed="s", share=0.5),
        made(OrallyChecked, outcome=OralOutcome.FAILED, digest=DIGEST),
        made(OrallyChecked, outcome=None, digest=DIGEST),
        made(OrallyChecked, outcome=OralOutcome.PASSED, digest=DIGEST),
        made(RegradeAsked, target="q6", asked=WHEN, points=2.0, marker="Marquart-the-marker"),
        made(RegradeAnswered, target="q6", points=3.0),
        made(RegradeAsked, target="q7", asked=WHEN, points=2.0, marker="Marquart-the-marker"),
        made(InquiryAsked, about=OralReason.SIMILAR, place="homework.py:1", quoted="x = 1"),
        made(InquiryExplained, number=1, explained=WHEN),
        made(InquirySettled, number=1, outcome=InquiryOutcome.CONFIRMED, target="q6", points=2.0),
        made(InquirySettled, number=1, outcome=None),
        made(InquirySettled, number=1, outcome=InquiryOutcome.DISMISSED),
        made(Reviewed, points=12.0, digest=DIGEST),
        made(Reviewed, points=None, withdrawn=True),
        made(Reviewed, points=11.0, lines=(("q6", 2.0),), digest=DIGEST),
        made(Released, way="canvas", points=12.0),
        *(replace(edit, points=2.5 if edit.target.startswith("q10") else 3.0) for edit in marks[:3]),
    ]


def _parts(assignment: Assignment) -> list[str]:
    return [target for target in assignment.mark_targets() if target.startswith("q10.")]


@pytest.fixture
def haggled(graded_class: Path, late_course: Path, class_evidence: Callable[..., Any]) -> Path:
    """The class after all that, with all pages written again."""
    assignment = read_assignment(late_course / "reference/vit_defects")
    edits = every_kind(assignment)
    assert {type(edit) for edit in edits} == set(Edit.__subclasses__()), "a new kind of decision belongs here"
    with Gradebook(graded_class) as book:
        evidence = replace(
            class_evidence(STUDENT, failed=[edits[0].target]),
            source={"homework.py": "x = 1\n"},
            received_at=WHEN,
        )
        Keeper(assignment, book, graded_class, "Marquart-the-runner").kept(evidence, {}, WHEN)
        assert book.append(edits, [], after=book.snapshot().state)
    said("regrade", graded_class)
    return graded_class


def read_by_students(out: Path, tmp_path: Path) -> dict[str, str]:
    """All that reaches students, by where it is."""
    said("publish", out, "--to", tmp_path / "published", "--partial")
    worksheet = tmp_path / "w.csv"
    worksheet.write_text(WORKSHEET)
    said("export", "gradescope", out, "--partial")
    said("export", "feedback-zip", out, "--into", worksheet, "--partial")
    found = [*out.glob("students/*/*.html"), *(tmp_path / "published").glob("students/*/*.html")]
    found += out.glob("exports/gradescope/*/results.json")
    texts = {str(path): path.read_text("utf-8") for path in found}
    with zipfile.ZipFile(out / "exports/feedback.zip") as archive:
        texts |= {name: archive.read(name).decode() for name in archive.namelist()}
    return texts


def test_nothing_that_students_read_names_a_marker_a_sheet_or_a_command(
    haggled: Path, tmp_path: Path
) -> None:
    for item in ("q8", "q9"):
        said("marks", "set", haggled, STUDENT, item, "3", "--why", "Clear enough.", "--by", "Marquart-set")
    said("publish", haggled, "--to", tmp_path / "before", "--partial")
    said("marks", "set", haggled, STUDENT, "q8", "none", "--why", "Seen again.", "--by", "Marquart-set",
         "--allow-lower")  # fmt: skip
    said("marks", "set", haggled, STUDENT, "q8", "4", "--why", "Very clear.", "--by", "Marquart-set")
    texts = read_by_students(haggled, tmp_path)
    names = {Path(name).name for name in texts}
    assert {"report.html", "submission.html", "results.json"} <= names
    assert any("assignfeedback_file_report" in name for name in names)
    found = {(name, word) for name, text in texts.items() for word in STAFF if word in text}
    assert found == set()
    page = (haggled / "students" / STUDENT / "report.html").read_text("utf-8")
    for told in ("Marked by a person.", "Very clear.", "Why-waived", "Why-received", "Why-claimed"):
        assert told in page, "reasons that students are meant to read"
    missing = (haggled / "students" / MISSING / "report.html").read_text("utf-8")
    assert "Why-ruled" in missing and "An oral check is pending" in missing
    assert "Marquart-set" in said("history", haggled, STUDENT), "staff see who it was"
    assert "Sheetname.csv" in said("history", haggled, STUDENT)
    assert "Marquart-marked" in (haggled / "results.json").read_text("utf-8")


def test_before_the_release_there_is_no_history_and_after_it_one_sentence(
    graded_class: Path, tmp_path: Path, late_course: Path
) -> None:
    def changes() -> list[str]:
        page = (graded_class / "students/400101201/report.html").read_text("utf-8")
        return re.findall(r"Changed since [\d-]+: [^<]*", page)

    def mark(points: str) -> None:
        said("marks", "set", graded_class, "400101201", "q6", points, "--why", f"Now {points}.")

    mark("4")
    mark("5")
    mark("4.5")
    assert changes() == []
    said("publish", graded_class, "--to", tmp_path / "published", "--partial")
    said("marks", "set", graded_class, "400101201", "q7", "3", "--why", "It was open.")
    assert changes() == [], "what nobody knew then is not a change"
    mark("4.75")
    mark("5")
    [told] = changes()
    assert told.endswith(": 4.5 → 5.")
    said("marks", "set", graded_class, "400101201", "q6", "4.5", "--why", "As before.", "--allow-lower")
    assert changes() == [], "it is what it was"


def test_a_change_of_the_rubric_after_the_release_is_told_too(
    graded_class: Path, tmp_path: Path, late_course: Path
) -> None:
    said("publish", graded_class, "--to", tmp_path / "published", "--partial")
    file = late_course / "reference/vit_defects/assignment.toml"
    text = file.read_text("utf-8")
    assert text.count("{ at = 0.80, points = 15 }") == 1
    file.write_text(text.replace("{ at = 0.80, points = 15 }", "{ at = 0.70, points = 15 }"), "utf-8")
    said("regrade", graded_class)
    page = (graded_class / "students/400101201/report.html").read_text("utf-8")
    assert re.findall(r"Changed since [\d-]+: ([^<]*)", page) == ["12 → 15."]
