"""The pages of a class as a static folder or a zip: the class page apart, and one page per student."""

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.result import Result
from grader.files import atomic
from grader.files.page_names import REPORT, STUDENT_FILES
from grader.files.zip_archive import zipped
from grader.lms.matching import candidates
from grader.publishing.grades import owned
from grader.reports.results_json.attendance import attended
from grader.reports.results_json.results_contract import DownloadRecord
from grader.reports.student.attention_page import attention_page, shows_attention
from grader.reports.student.student_pages import student_pages
from grader.reports.whole_class.class_page import class_page, leaderboard_page
from grader.reports.whole_class.download_summary import still_lacking
from grader.reports.whole_class.review_cases import LACKING, cases
from grader.reports.whole_class.similarity_record import PAGE as SIMILARITY_PAGE
from grader.reports.whole_class.similarity_record import SimilarityRecord

INSTRUCTORS, STUDENTS = "instructors", "students"  # the folders of a publication
CLASS_PAGE, LEADERBOARD = f"{INSTRUCTORS}/index.html", f"{INSTRUCTORS}/leaderboard.html"
ATTENTION = "attention"  # the folder of the pages about where models look

Page = tuple[str, bytes]
"""(path within the publication, content)."""


def open_reasons(
    assignment: Assignment, results: Sequence[Result], download: DownloadRecord | None = None
) -> tuple[str, ...]:
    """Why the grades cannot be handed out yet, each reason once; () when they can.

    Args:
        download: The account of the files of all downloads.
    """
    found = [
        case.cause.title
        for result in results
        for case in cases(assignment, result.evidence, result.score)
        if case.cause.holds and not result.score.held
    ]
    if still_lacking(download, candidates((result.evidence, result.score) for result in results)):
        found.append(LACKING.title)
    return tuple(dict.fromkeys(found))


def pages(
    assignment: Assignment,
    results: Sequence[Result],
    images: Callable[[str], Mapping[str, bytes]],
    *,
    now: datetime,
    download: DownloadRecord | None = None,
    similarity: tuple[SimilarityRecord, bytes] | None = None,
    stamps: Mapping[str, datetime] | None = None,
    only: AbstractSet[str] | None = None,
) -> Iterator[Page]:
    """The pages: `instructors/` links to all of `students/<id>/`, and a student's pages to each other.

    They are in folders apart, so that whoever serves them can protect each. A submission of which nobody
    knows whose it is has no page: the class page tells of it.

    Args:
        assignment: What was asked for.
        results: What was found and scored.
        images: Student id -> the images of the report, and the view of the submission.
        now: When the pages are made.
        download: The account of the files.
        similarity: What was found when the submissions were compared, and the page of it: for instructors.
        stamps: Path -> when the page was made, for those that were made earlier.
        only: Make no others; by default all.
    """

    def made_at(path: str) -> datetime:
        return (stamps or {}).get(path, now)

    def wanted(*paths: str) -> bool:
        return only is None or not only.isdisjoint(paths)

    pairs = [(result.evidence, result.score) for result in results]
    told = owned(pairs)
    links = {score.student_id: f"../students/{score.student_id}/{REPORT}" for _, score in told}
    if wanted(CLASS_PAGE):
        made = class_page(
            assignment,
            pairs,
            links=links,
            generated_at=made_at(CLASS_PAGE),
            attention={
                score.student_id: f"{ATTENTION}/{score.student_id}.html"
                for evidence, score in told
                if shows_attention(evidence)
            },
            download=attended(download, candidates(pairs)),
            similarity=similarity[0] if similarity else None,
        )
        yield CLASS_PAGE, made.encode("utf-8")
    if similarity is not None and wanted(f"{INSTRUCTORS}/{SIMILARITY_PAGE}"):
        yield f"{INSTRUCTORS}/{SIMILARITY_PAGE}", similarity[1]
    if assignment.leaderboard and wanted(LEADERBOARD):
        made = leaderboard_page(assignment, pairs, generated_at=made_at(LEADERBOARD))
        yield LEADERBOARD, made.encode("utf-8")
    for evidence, score in told:
        places = {name: f"{STUDENTS}/{score.student_id}/{name}" for name in STUDENT_FILES}
        aside = f"{INSTRUCTORS}/{ATTENTION}/{score.student_id}.html"
        if not wanted(*places.values(), aside):
            continue
        own_images = images(score.student_id)
        # all pages of a student are made at once; an update may have made one of them later
        own = {
            stamp: student_pages(assignment, evidence, score, own_images, stamp)
            for stamp in dict.fromkeys(map(made_at, places.values()))
        }
        for name, place in places.items():
            if name in own[made_at(place)] and wanted(place):
                yield place, own[made_at(place)][name]
        attention = attention_page(assignment, evidence, images=own_images, generated_at=made_at(aside))
        if attention is not None and wanted(aside):
            yield aside, attention.encode("utf-8")


def publish(found: Iterable[Page], target: Path, now: datetime) -> None:
    """Write pages as a zip, where the target's name ends so, else as a folder: whole, or not at all.

    Raises:
        UsageError: Something is there already, or the disk does not take it.
    """
    if target.exists():
        raise UsageError(f"{target} is there already. Add --update, or give another --to.")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no folder {target.parent}. Make it, or give another --to.")
    if target.suffix.lower() == ".zip":
        moment = now.year, now.month, now.day, now.hour, now.minute, now.second
        atomic.write(target, zipped(found, moment))
    else:
        _write_folder(found, target)


def _write_folder(found: Iterable[Page], target: Path) -> None:
    # beside the target, so that it becomes the target in one step
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        for path, content in found:
            place = beside / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        beside.rename(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written ({error.strerror}). Make room there.") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
