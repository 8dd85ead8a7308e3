"""A class, published: its pages are written for students, and the gradebook notes that the grades left."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.publishing.grades import left_out, owned
from grader.publishing.publication import open_reasons, pages, publish
from grader.publishing.publication_update import Manifest, Update, update, with_manifest
from grader.publishing.releases import unnoted_releases
from grader.reports.whole_class.download_summary import summed
from grader.reports.whole_class.similarity_record import PAGE, SimilarityRecord, previous_similarity
from grader.results.current_results import results_now
from grader.results.download_accounts import standing_downloads
from grader.results.session import ClassSession

WAY = "publish"


@dataclass(frozen=True)
class PublicationRequest:
    """Where a class is to be published.

    Attributes:
        to: A new folder, or a new `.zip`; a folder that was published before, where it is updated.
        updates: Only pages that say something else are written, and those of nobody any more removed.
        partial: Also while something awaits a person.
    """

    to: Path
    updates: bool = False
    partial: bool = False


@dataclass(frozen=True)
class PublishedClass:
    """What was published.

    Attributes:
        grades: Student -> the grade that left, after what lateness costs; None: there is none.
        update: What became of the pages; None of a new publication.
        left_out: Whose submissions have no page, a sentence each.
        unnoted: That the gradebook does not know that the grades left, and why; empty where it does.
    """

    grades: Mapping[str, float | None]
    update: Update | None
    left_out: tuple[str, ...]
    unnoted: str = ""


def publish_class(session: ClassSession, request: PublicationRequest) -> PublishedClass:
    """Write the class page and the students' pages as the gradebook is now.

    Raises:
        UsageError: Something awaits a person and that is not allowed, or the pages cannot be written.
    """
    assignment, out = session.assignment, session.out
    seen = session.book.snapshot()
    results = results_now(assignment, seen)
    download = summed(standing_downloads(session.book, out, seen))
    reasons = open_reasons(assignment, results, download)
    if reasons and not request.partial:
        raise UsageError(
            f"Not ready to hand out: {'; '.join(reasons)}. "
            f"See {out / 'index.html'}, or add --partial. Nothing was written."
        )
    pairs = [(result.evidence, result.score) for result in results]
    grades = {score.student_id: score.final for _, score in owned(pairs)}
    now = session.clock()
    about = Manifest(assignment=assignment.id, book=session.book.identity(), grades=dict(grades))
    made = functools.partial(
        pages,
        assignment,
        results,
        session.book.images,
        now=now,
        download=download,
        similarity=_similarity(out, assignment.id),
    )
    done = None
    if request.updates:
        done = update(lambda stamps, only: made(stamps=stamps, only=only), about, request.to, now)
    else:
        publish(with_manifest(made(), about, now), request.to, now)
    unnoted = unnoted_releases(
        session.book, seen, results, grades, way=WAY, who=session.who, when=session.clock(), out=out
    )
    return PublishedClass(grades, done, tuple(left_out(pairs)), unnoted)


def _similarity(out: Path, assignment_id: str) -> tuple[SimilarityRecord, bytes] | None:
    """What `grader similar` left in the folder: the record and its page, if both are there."""
    record, page = previous_similarity(out, assignment_id), out / PAGE
    return (record, page.read_bytes()) if record is not None and page.is_file() else None
