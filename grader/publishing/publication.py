"""A class, published: its pages for students, as a static folder or a zip, kept up to date.

It writes the class page, separately one page per student, and notes the release in the gradebook. It never
decides what a page says, or which grades are released (`releases` does). `exporting` and `push` are the other
ways of a report to its student.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import listed
from grader.domain.score import Score
from grader.domain.submission_result import Result
from grader.lms.matching import candidates
from grader.publishing.publication_folder import (
    Manifest,
    Update,
    publish,
    published_before,
    require_new,
    students_who_stay,
    update,
    with_manifest,
)
from grader.publishing.released_class_pages import pages
from grader.publishing.releases import left_out, owned, release_problem, unreviewed
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.whole_class.review_cases import LACKING, cases
from grader.reports.whole_class.review_queue import still_lacking, summed
from grader.reports.whole_class.similarity_record import PAGE as SIMILARITY_PAGE
from grader.reports.whole_class.similarity_record import SimilarityRecord, previous_similarity
from grader.results.current_state import current_downloads, results_now
from grader.results.folder_use import PUBLICATION, note_written
from grader.results.session import ClassSession
from grader.scoring.grade_state import is_reviewed

WAY = "publish"


def open_reasons(
    assignment: Assignment,
    results: Sequence[Result],
    download: DownloadRecord | None = None,
    students: AbstractSet[str] | None = None,
) -> tuple[str, ...]:
    """Why the grades cannot be handed out yet, each reason once; empty when they can.

    Args:
        results: Of the class.
        download: The account of the files of all downloads.
        students: Whose grades are handed out; None: everybody's.
    """
    titles = [
        case.cause.title
        for result in results
        if students is None or result.score.student_id in students
        for case in cases(assignment, result.evidence, result.score)
        if case.cause.holds and not result.score.held
    ]
    lacking = still_lacking(download, candidates((result.evidence, result.score) for result in results))
    if any(students is None or record.student_id in students for record in lacking):
        titles.append(LACKING.title)
    return tuple(dict.fromkeys(titles))


@dataclass(frozen=True)
class PublicationRequest:
    """Where a class is to be published.

    Attributes:
        to: A new folder, or a new `.zip`; for an update, a folder that was published before.
        updates: Write only pages that have changed, and remove those that no longer exist.
        partial: Publish even while something awaits a person.
        students: Whose grades are released; None: everybody's.
    """

    to: Path
    updates: bool = False
    partial: bool = False
    students: frozenset[str] | None = None

    def asks_for(self, student_id: str) -> bool:
        """Whether a student's grade is to be released."""
        return self.students is None or student_id in self.students


@dataclass(frozen=True)
class PublishedClass:
    """What was published.

    Attributes:
        grades: Student -> the released grade, after what lateness costs; None: there is none.
        update: What was changed; None for a new publication.
        left_out: The submissions that have no page, or keep the one that they had, a sentence each.
        unreviewed: A sentence on the grades that nobody has reviewed as they are; empty without any.
        not_recorded: Why the gradebook does not know that the grades were released; empty where it does.
    """

    grades: Mapping[str, float | None]
    update: Update | None
    left_out: tuple[str, ...]
    unreviewed: str = ""
    not_recorded: str = ""


def published_students(session: ClassSession, target: Path) -> frozenset[str]:
    """The students who have pages in a publication of the class.

    Raises:
        UsageError: There is no publication, or it is of another gradebook.
    """
    about = Manifest(assignment=session.assignment.id, book=session.book.identity())
    return frozenset(published_before(target, about).students())


def publish_class(session: ClassSession, request: PublicationRequest) -> PublishedClass:
    """Write the class page and the students' pages as the gradebook is now.

    Raises:
        UsageError: Something awaits a person and that is not allowed, nobody has a grade, or the pages
            cannot be written.
    """
    assignment, out, now = session.assignment, session.out, session.clock()
    snapshot = session.book.snapshot(attempts=assignment.compares_attempts)
    results = results_now(assignment, snapshot)
    download = summed(current_downloads(session.book, out, snapshot))
    pairs = [(result.evidence, result.score) for result in results]
    scores = [score for _, score in owned(pairs)]
    about = Manifest(
        assignment=assignment.id,
        book=session.book.identity(),
        grades={score.student_id: score.final for score in scores},
    )
    earlier = published_before(request.to, about) if request.updates else None
    there = earlier.students() if earlier is not None else set[str]()
    asked = [score for score in scores if request.asks_for(score.student_id)]
    if request.students is not None and not asked and request.students.isdisjoint(there):
        raise UsageError(
            f"None of these students has a grade. See {out / 'index.html'}. Nothing was written."
        )
    _require_settled(request, open_reasons(assignment, results, download, request.students), out)
    chosen = _chosen(assignment, request, asked, now)
    if assignment.review_required and not chosen.grades and not there:
        raise UsageError(
            "Nobody has reviewed these grades as they are, as the assignment demands: `grader review`. "
            "Nothing was written."
        )
    linked = chosen.students
    if linked is not None and earlier is not None:
        linked |= students_who_stay(earlier, about, linked).keys()
    made = functools.partial(
        pages,
        assignment,
        results,
        session.book.images,
        now=now,
        download=download,
        similarity=_similarity(out, assignment.id),
        students=chosen.students,
        linked=linked,
    )
    not_recorded = ""

    def release() -> None:
        nonlocal not_recorded
        not_recorded = release_problem(
            session.book,
            snapshot,
            results,
            chosen.shown_grades(),
            way=WAY,
            who=session.who,
            when=session.clock(),
            out=out,
        )

    if not request.updates:  # else what is there would be cleaned as if it were a publication
        require_new(request.to)
    note_written(session.book, [request.to], PUBLICATION)
    done = None
    if request.updates:
        done = update(
            lambda stamps, only: made(stamps=stamps, only=only),
            about,
            request.to,
            now,
            chosen.students,
            known=snapshot.evidence.keys() | snapshot.changed_ids().keys(),
            before=release,
        )
    else:
        about = about.model_copy(update={"grades": dict(chosen.grades)})
        publish(with_manifest(made(), about, now), request.to, now, before=release)
    without = left_out([pair for pair in pairs if request.asks_for(pair[1].student_id)])
    if chosen.lacking_review:
        names = listed(chosen.lacking_review)
        without += (f"{names}: left out until somebody has reviewed them (`grader review`).",)
    told = unreviewed(score for score in scores if score.student_id in chosen.grades)
    return PublishedClass(chosen.grades, done, without, told, not_recorded)


def _require_settled(request: PublicationRequest, reasons: Sequence[str], out: Path) -> None:
    """Refuse to publish what awaits a person, unless that is asked for."""
    if reasons and not request.partial:
        raise UsageError(
            f"Not ready to hand out: {'; '.join(reasons)}. "
            f"See {out / 'index.html'}, or add --partial. Nothing was written."
        )


@dataclass(frozen=True)
class _Chosen:
    """Whose grades are handed out, and whose pages are made.

    Attributes:
        grades: Student -> the grade, after what lateness costs; None: there is none.
        withheld: Students whose page withholds the grade until the deadline: it is not released by it.
        students: Whose pages are made; None: everybody's.
        lacking_review: Those who are left out because nobody has reviewed their grades as they are.
    """

    grades: Mapping[str, float | None]
    withheld: frozenset[str]
    students: frozenset[str] | None
    lacking_review: tuple[str, ...] = ()

    def shown_grades(self) -> dict[str, float | None]:
        """Those that are on the pages."""
        return {one: grade for one, grade in self.grades.items() if one not in self.withheld}


def _chosen(
    assignment: Assignment, request: PublicationRequest, asked: Sequence[Score], now: datetime
) -> _Chosen:
    """Whose grades are handed out of those that are asked for."""
    grades = {score.student_id: score.final for score in asked}
    withheld = frozenset(score.student_id for score in asked if score.withholds(now))
    if not assignment.review_required:
        return _Chosen(grades, withheld, request.students)
    lacking = _lacking_review(asked, grades.keys() - withheld)
    reviewed = {one: grade for one, grade in grades.items() if one not in lacking}
    return _Chosen(reviewed, withheld, frozenset(reviewed), lacking)


def _lacking_review(scores: Iterable[Score], among: AbstractSet[str]) -> tuple[str, ...]:
    """Those of some students whose grades nobody has reviewed as they are."""
    open_ones = (score for score in scores if score.student_id in among and not is_reviewed(score))
    return tuple(sorted(score.student_id for score in open_ones))


def _similarity(out: Path, assignment_id: str) -> tuple[SimilarityRecord, bytes] | None:
    """The record and the page that `grader similar` left in the folder; None unless both are there."""
    record, page = previous_similarity(out, assignment_id), out / SIMILARITY_PAGE
    return (record, page.read_bytes()) if record is not None and page.is_file() else None
