"""A student's PDF and its pages in the folder of the results: there when they count, else gone."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.upload_owner import new_owner
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked, RunChosen
from grader.domain.submission import ANSWERS_FILE, Answers, DrawnPage, Origin
from grader.files.file_names import ANSWERS_PAGE
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.publishing.released_class_pages import pages
from grader.results.class_files import lying_beside
from grader.results.current_state import results_now
from grader.results.revision import revised

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
STUDENT = "400101201"
PICTURE = b"RIFF\x04\x00\x00\x00WEBPpicture of %d"
Q6 = Marked(
    who="ta-anna",
    when=NOW,
    why="marked in anna.csv",
    student_id=STUDENT,
    target="q6",
    points=4.0,
    comment="Say why.",
)


def with_answers(
    pdf: bytes = b"%PDF-1", pages: int = 2, *, kept: bool = True
) -> tuple[Answers, dict[str, bytes]]:
    """A PDF of so many pages, and the files that belong to it."""
    drawn = tuple(DrawnPage(number, 848, 1200) for number in range(1, pages + 1))
    files = {page.image: PICTURE % page.number for page in drawn}
    answers = Answers("my.pdf", sha256(pdf).hexdigest(), len(pdf), kept, pages, pages, drawn)
    return answers, {**files, **({ANSWERS_FILE: pdf} if kept else {})}


@pytest.fixture
def keep(graded_class: Path, assignment: Assignment, class_evidence: Callable[..., Any]):
    """Keep another run of the student, with or without a PDF."""

    def kept(answers: Answers | None, files: dict[str, bytes], **fields: Any) -> Path:
        evidence = replace(class_evidence(STUDENT), answers=answers, **fields)
        with Gradebook(graded_class) as book:
            Keeper(assignment, book, graded_class, "ta1").kept(evidence, files, NOW)
        return graded_class / "students" / STUDENT

    return kept


@pytest.fixture
def revise(graded_class: Path, assignment: Assignment):
    """Add edits and write what follows."""

    def run(*edits: Edit) -> list[str]:
        """The names of images that were read from the book."""
        read: list[str] = []

        class Watched(Gradebook):
            def images(self, *args: Any, **more: Any) -> dict[str, bytes]:
                found = super().images(*args, **more)
                read.extend(found)
                return found

        with Watched(graded_class) as book:
            decide = (lambda *_: edits) if edits else None
            revised(assignment, book, graded_class, who="ta1", cause="test", clock=lambda: NOW, decide=decide)
        return read

    return run


def test_they_are_written_and_removed_with_the_run_that_counts(keep) -> None:
    folder = keep(*with_answers())
    assert {ANSWERS_PAGE, ANSWERS_FILE} <= {path.name for path in folder.iterdir()}
    assert (folder / ANSWERS_FILE).read_bytes() == b"%PDF-1"
    assert (folder / ANSWERS_PAGE).read_text("utf-8").count("<img ") == 2
    keep(*with_answers(b"%PDF-2", 3), submission_digest="cd34")
    assert (folder / ANSWERS_FILE).read_bytes() == b"%PDF-2"
    assert (folder / ANSWERS_PAGE).read_text("utf-8").count("<img ") == 3
    keep(*with_answers(b"%PDF-3", kept=False), submission_digest="ef56")
    assert not (folder / ANSWERS_FILE).exists()
    assert ANSWERS_FILE not in (folder / ANSWERS_PAGE).read_text("utf-8")
    keep(None, {}, submission_digest="0000")
    assert {path.name for path in folder.iterdir()} == {"report.html"}


def test_an_earlier_attempt_that_is_chosen_brings_its_pdf_back(keep, revise) -> None:
    folder = keep(*with_answers(b"%PDF-old"), graded_at=NOW)
    keep(*with_answers(b"%PDF-new", 3), submission_digest="cd34")
    revise(RunChosen(who="ta1", when=NOW, why="Agreed.", student_id=STUDENT, number=2))
    assert (folder / ANSWERS_FILE).read_bytes() == b"%PDF-old"
    assert (folder / ANSWERS_PAGE).read_text("utf-8").count("<img ") == 2


def test_marks_are_written_to_the_page_without_reading_the_pdf_again(keep, revise) -> None:
    folder = keep(*with_answers())
    before = (folder / ANSWERS_FILE).stat().st_mtime_ns
    read = revise(Q6)
    assert "Say why." in (folder / ANSWERS_PAGE).read_text("utf-8")
    assert read == ["answers-01.webp", "answers-02.webp"]
    assert (folder / ANSWERS_FILE).stat().st_mtime_ns == before


@pytest.mark.parametrize("there", [b"", b"%PDF-2", None])
def test_a_pdf_that_is_damaged_or_gone_is_written_again(keep, revise, there) -> None:
    folder = keep(*with_answers())
    (folder / ANSWERS_FILE).unlink()
    if there is not None:
        (folder / ANSWERS_FILE).write_bytes(there)
    assert ANSWERS_FILE in revise()
    assert (folder / ANSWERS_FILE).read_bytes() == b"%PDF-1"


def test_what_lies_there_is_known_by_its_bytes(keep, graded_class, class_evidence) -> None:
    answers, files = with_answers()
    keep(answers, files)
    evidence = replace(class_evidence(STUDENT), answers=answers)
    assert lying_beside(graded_class, evidence) == {ANSWERS_FILE}
    assert not lying_beside(graded_class, replace(evidence, answers=replace(answers, digest="0" * 64)))
    assert not lying_beside(graded_class, replace(evidence, answers=replace(answers, kept=False)))
    assert not lying_beside(graded_class, replace(evidence, answers=None))


def test_they_move_with_whose_the_submission_is(keep, revise, graded_class) -> None:
    origin = Origin("Moodle:7", "A_7", "moodle-7", "Moodle", "7", "A", STUDENT, STUDENT)
    folder = keep(*with_answers(), origin=origin)
    with Gradebook(graded_class) as book:
        found = new_owner(book.snapshot(), STUDENT, "400101299", who="ta1", when=NOW, why="By the list.")
    revise(*found.edits)
    assert not (folder / ANSWERS_PAGE).exists() and not (folder / ANSWERS_FILE).exists()
    moved = folder.with_name("400101299")
    assert (moved / ANSWERS_FILE).read_bytes() == b"%PDF-1"
    page = (moved / ANSWERS_PAGE).read_text("utf-8")
    assert "400101299" in page and STUDENT not in page


def test_they_are_published_with_the_students_pages_and_name_no_marker(
    keep, revise, graded_class, assignment
) -> None:
    keep(*with_answers())
    revise(Q6)
    with Gradebook(graded_class) as book:
        results = results_now(assignment, book.snapshot())
        made = dict(pages(assignment, results, book.images, now=NOW))
    assert made[f"students/{STUDENT}/{ANSWERS_FILE}"] == b"%PDF-1"
    page = made[f"students/{STUDENT}/{ANSWERS_PAGE}"].decode()
    assert "Say why." in page and "anna" not in page
    own = {name.rpartition("/")[2] for name in made if name.startswith(f"students/{STUDENT}/")}
    links = {link.partition("#")[0] for link in re.findall(r'href="([^"]+)"', page)} - {""}
    assert links == {"report.html", ANSWERS_FILE} <= own
    assert not any(ANSWERS_PAGE in name for name in made if STUDENT not in name)
    listed = made["instructors/index.html"].decode()
    assert listed.count(f'href="../students/{STUDENT}/{ANSWERS_PAGE}">answers</a>') == 1
    assert listed.count(ANSWERS_PAGE) == 1, "who handed no PDF in has no link"
