"""Writes the files that people read, for each student and for the class."""

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.submission import ANSWERS_FILE
from grader.domain.submission_result import Result
from grader.files import atomic
from grader.files.file_names import ATTENTION_PAGE, REPORT, STUDENT_FILES
from grader.lms.matching import candidates
from grader.reports.results_json.filled_records import attended, scores_csv
from grader.reports.results_json.results_file import (
    results_text,
    submission_entries,
    submission_text,
    text_without_submissions,
)
from grader.reports.results_json.results_schema import DownloadRecord, ResultsDocument
from grader.reports.student.student_pages import attention_page, shows_attention, student_pages
from grader.reports.student.withheld_feedback import as_shown
from grader.reports.whole_class.class_overview import Overview, class_overview
from grader.reports.whole_class.class_page import leaderboard_page, overview_page
from grader.reports.whole_class.class_statistics import CheckRate
from grader.reports.whole_class.review_cases import Case
from grader.reports.whole_class.review_queue import summed
from grader.reports.whole_class.similarity_record import previous_similarity


def report_path(out: Path, student_id: str) -> Path:
    """The path of a student's report in the folder of the results."""
    return out / "students" / student_id / REPORT


def lying_beside(out: Path, evidence: Evidence) -> frozenset[str]:
    """The large files beside a student's report that equal those of the evidence and need no rewriting."""
    answers = evidence.answers
    if answers is None or not answers.kept:
        return frozenset()
    path = report_path(out, evidence.student_id).with_name(ANSWERS_FILE)
    try:
        with path.open("rb") as file:
            is_same = hashlib.file_digest(file, "sha256").hexdigest() == answers.digest
    except OSError:
        is_same = False
    return frozenset({ANSWERS_FILE}) if is_same else frozenset()


def write_student(
    assignment: Assignment, result: Result, images: Mapping[str, bytes], out: Path, now: datetime
) -> None:
    """Write a student's report, the pages of the submission beside it, and the page for staff.

    Args:
        images: The files that belong to the evidence; existing ones (`lying_beside`) may be left out.
    """
    put_student_pages(result.evidence, rendered_student(assignment, result, images, now), out)


def rendered_student(
    assignment: Assignment, result: Result, images: Mapping[str, bytes], now: datetime
) -> dict[str, bytes]:
    """Name -> content of a student's pages: see `write_student`."""
    pages = student_pages(assignment, *as_shown(assignment, result.evidence, result.score, now), images, now)
    attention = attention_page(assignment, result.evidence, images=images, generated_at=now)
    if attention is not None:
        pages[ATTENTION_PAGE] = attention.encode("utf-8")
    return pages


def put_student_pages(evidence: Evidence, pages: Mapping[str, bytes], out: Path) -> None:
    """Write a student's pages, and remove those of an earlier upload."""
    folder = report_path(out, evidence.student_id).parent
    atomic.make_folder(folder)
    unchanged_files = lying_beside(out, evidence)
    for name in {*STUDENT_FILES, ATTENTION_PAGE} - pages.keys() - unchanged_files:
        (folder / name).unlink(missing_ok=True)  # from an earlier upload
    atomic.write_all(folder, pages)


def write_class(
    assignment: Assignment,
    results: Sequence[Result],
    out: Path,
    now: datetime,
    downloads: Sequence[DownloadRecord] = (),
    *,
    unchanged: Collection[str] = (),
) -> Overview:
    """Write the class page, the leaderboard if there is one, scores.csv and, last, results.json.

    Each is written completely or not at all.

    Args:
        downloads: The account of the files of each download, oldest first.
        unchanged: The students whose entry in the existing results.json is up to date.

    Returns:
        The content of the first screen of the class page.
    """
    ordered = sorted(results, key=lambda result: result.score.student_id)
    pairs = [(result.evidence, result.score) for result in ordered]
    links = {
        score.student_id: report_path(out, score.student_id).relative_to(out).as_posix() for _, score in pairs
    }
    atomic.make_folder(out)
    all_candidates, all_downloads = candidates(pairs), summed(downloads)
    download_records = [
        record
        for record in (attended(record, all_candidates, all_downloads) for record in downloads)
        if record is not None
    ]
    attention = {
        evidence.student_id: f"students/{evidence.student_id}/{ATTENTION_PAGE}"
        for evidence, _ in pairs
        if shows_attention(evidence)
    }
    overview = overview_of(assignment, pairs, out, downloads)
    page = overview_page(overview, links=links, generated_at=now, attention=attention)
    atomic.write(out / "index.html", page.encode("utf-8"))
    if assignment.leaderboard:
        board = leaderboard_page(assignment, pairs, generated_at=now)
        atomic.write(out / "leaderboard.html", board.encode("utf-8"))
    else:
        (out / "leaderboard.html").unlink(missing_ok=True)  # from a time when the course had one
    atomic.write(out / "scores.csv", scores_csv(assignment, pairs).encode("utf-8"))
    path = out / "results.json"
    text = _results_text(assignment, pairs, overview.download, download_records, path, unchanged)
    atomic.write_pieces(path, (piece.encode("utf-8") for piece in text))
    return overview


def overview_of(
    assignment: Assignment,
    results: Sequence[tuple[Evidence, Score]],
    out: Path,
    downloads: Sequence[DownloadRecord],
    *,
    own_cases: Mapping[str, tuple[Case, ...]] | None = None,
    rates: Sequence[CheckRate] | None = None,
) -> Overview:
    """A class at a glance, with the account of its files and what was found when it was compared.

    Args:
        out: The folder of the results.
        downloads: The account of the files of each download, oldest first.
        own_cases, rates: See `class_overview`.
    """
    download = attended(summed(downloads), candidates(results))
    similarity = previous_similarity(out, assignment.id)
    return class_overview(assignment, results, download, similarity, own_cases=own_cases, rates=rates)


def _results_text(
    assignment: Assignment,
    pairs: Sequence[tuple[Evidence, Score]],
    download: DownloadRecord | None,
    downloads: Sequence[DownloadRecord],
    path: Path,
    unchanged: Collection[str],
) -> Iterator[str]:
    """The text of results.json; the entries of unchanged students are copied from the existing file."""
    with contextlib.closing(submission_entries(path)) as before:  # sorted by student, like the new ones

        def text_of(evidence: Evidence, score: Score) -> str:
            if score.student_id in unchanged:
                for student_id, text in before:
                    if student_id == score.student_id:
                        return text
            return submission_text(evidence, score)

        yield from results_text(assignment, pairs, download, downloads, text_of=text_of)


def previous_download(out: Path) -> DownloadRecord | None:
    """The account of the files in an earlier results.json; None if there is none.

    The gradebook has one for each download (`current_downloads`), unless an older version graded it.
    """
    try:
        return ResultsDocument.model_validate_json(text_without_submissions(out / "results.json")).download
    except (OSError, ValueError):  # it is written again from the gradebook
        return None
