"""Which pages a publication has: those of the class for staff, and those of each student.

It says where each page is and when it is made; the words on it are those of `reports`. It writes nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.submission_result import Result
from grader.files.file_names import REPORT, STUDENT_FILES
from grader.lms.matching import candidates
from grader.publishing.releases import owned
from grader.reports.results_json.filled_records import attended
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.student.student_pages import attention_page, shows_attention, student_pages
from grader.reports.student.withheld_feedback import as_shown
from grader.reports.whole_class.class_page import class_page, leaderboard_page
from grader.reports.whole_class.similarity_record import PAGE as SIMILARITY_PAGE
from grader.reports.whole_class.similarity_record import SimilarityRecord

INSTRUCTORS, STUDENTS = "instructors", "students"  # the folders of a publication
CLASS_PAGE, LEADERBOARD = f"{INSTRUCTORS}/index.html", f"{INSTRUCTORS}/leaderboard.html"
ATTENTION = "attention"  # the folder of the pages about where models look

Page = tuple[str, bytes]
"""(path within the publication, content)."""


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
    students: AbstractSet[str] | None = None,
    linked: AbstractSet[str] | None = None,
) -> Iterator[Page]:
    """The pages: `instructors/` links to all of `students/<id>/`, and a student's pages to each other.

    They are in separate folders, so that a server can protect each. A submission without a known owner has
    no page; the class page mentions it.

    Args:
        assignment: What was asked for.
        results: What was found and scored.
        images: Student id -> the images of the report, and the view of the submission.
        now: When the pages are made.
        download: The account of the files.
        similarity: What was found when the submissions were compared, and its page, for instructors.
        stamps: Path -> when the page was made, for pages that were made earlier.
        only: The paths of the pages to make; None: all.
        students: Whose pages are made; None: everybody's.
        linked: Those to whose pages the class page leads; None: everybody.
    """

    def made_at(path: str) -> datetime:
        return (stamps or {}).get(path, now)

    def wanted(*paths: str) -> bool:
        return only is None or not only.isdisjoint(paths)

    pairs = [(result.evidence, result.score) for result in results]
    published = owned(pairs)
    on_pages = [pair for pair in published if linked is None or pair[1].student_id in linked]
    links = {score.student_id: f"../students/{score.student_id}/{REPORT}" for _, score in on_pages}
    if wanted(CLASS_PAGE):
        made = class_page(
            assignment,
            pairs,
            links=links,
            generated_at=made_at(CLASS_PAGE),
            attention={
                score.student_id: f"{ATTENTION}/{score.student_id}.html"
                for evidence, score in on_pages
                if shows_attention(evidence)
            },
            download=attended(download, candidates(pairs)),
            similarity=similarity[0] if similarity else None,
            top="../",
        )
        yield CLASS_PAGE, made.encode("utf-8")
    if similarity is not None and wanted(f"{INSTRUCTORS}/{SIMILARITY_PAGE}"):
        yield f"{INSTRUCTORS}/{SIMILARITY_PAGE}", similarity[1]
    if assignment.leaderboard and wanted(LEADERBOARD):
        made = leaderboard_page(assignment, pairs, generated_at=made_at(LEADERBOARD))
        yield LEADERBOARD, made.encode("utf-8")
    for evidence, score in published:
        if students is not None and score.student_id not in students:
            continue
        places = {name: f"{STUDENTS}/{score.student_id}/{name}" for name in STUDENT_FILES}
        aside = f"{INSTRUCTORS}/{ATTENTION}/{score.student_id}.html"
        if not wanted(*places.values(), aside):
            continue
        own_images = images(score.student_id)
        # all pages of a student are made at once; an update may have made one of them later
        shown = as_shown(assignment, evidence, score, now)
        made_by_stamp = {
            stamp: student_pages(assignment, *shown, own_images, stamp)
            for stamp in dict.fromkeys(map(made_at, places.values()))
        }
        for name, place in places.items():
            if name in made_by_stamp[made_at(place)] and wanted(place):
                yield place, made_by_stamp[made_at(place)][name]
        attention = attention_page(assignment, evidence, images=own_images, generated_at=made_at(aside))
        if attention is not None and wanted(aside):
            yield aside, attention.encode("utf-8")
