"""A class, published: its pages for students, as a static folder or a zip, kept up to date.

It writes the class page, separately one page per student, and notes the release in the gradebook. Only
pages that have changed are written again, and it reports whose. A publication lists its pages, each with a
digest and the time when it was made. A page has not changed if making it again with that time gives the
same page. It never decides what a page says, or which grades are released (`releases` does).
`exporting` and `push` are the other ways of a report to its student.
"""

import contextlib
import functools
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import listed
from grader.domain.score import Score
from grader.domain.submission_result import Result
from grader.files import atomic
from grader.files.file_names import REPORT, STUDENT_FILES
from grader.files.stored_records import validator
from grader.files.zip_archive import zipped
from grader.lms.matching import candidates
from grader.publishing.releases import left_out, owned, release_problem, unreviewed
from grader.reports.results_json.filled_records import attended
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.student.student_pages import attention_page, shows_attention, student_pages
from grader.reports.student.withheld_feedback import as_shown
from grader.reports.whole_class.class_page import class_page, leaderboard_page
from grader.reports.whole_class.review_cases import LACKING, cases
from grader.reports.whole_class.review_queue import still_lacking, summed
from grader.reports.whole_class.similarity_record import PAGE as SIMILARITY_PAGE
from grader.reports.whole_class.similarity_record import SimilarityRecord, previous_similarity
from grader.results.current_state import current_downloads, results_now
from grader.results.folder_use import PUBLICATION, note_written
from grader.results.session import ClassSession
from grader.scoring.grade_state import is_reviewed

INSTRUCTORS, STUDENTS = "instructors", "students"  # the folders of a publication
CLASS_PAGE, LEADERBOARD = f"{INSTRUCTORS}/index.html", f"{INSTRUCTORS}/leaderboard.html"
ATTENTION = "attention"  # the folder of the pages about where models look

Page = tuple[str, bytes]
"""(path within the publication, content)."""


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


def publish(
    pages: Iterable[Page], target: Path, now: datetime, before: Callable[[], object] = lambda: None
) -> None:
    """Write pages as a zip, where the target's name ends in .zip, else as a folder: whole, or not at all.

    Args:
        before: Called when all is ready, and nobody can read the pages yet.

    Raises:
        UsageError: Something is there already, or it cannot be written.
    """
    require_new(target)
    if target.suffix.lower() == ".zip":
        moment = now.year, now.month, now.day, now.hour, now.minute, now.second
        content = zipped(pages, moment)
        before()
        atomic.write(target, content)
    else:
        _write_folder(pages, target, before)


def require_new(target: Path) -> None:
    """Refuse a place for a publication that is there, or whose folder is not.

    Raises:
        UsageError: It is such a place.
    """
    if target.exists():
        raise UsageError(f"{target} is there already. Add --update, or give another --to.")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no folder {target.parent}. Make it, or give another --to.")


def _write_folder(pages: Iterable[Page], target: Path, before: Callable[[], object]) -> None:
    # beside the target, so that it becomes the target in one step
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        for path, content in pages:
            place = beside / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        before()
        beside.rename(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written ({error.strerror}). Make room there.") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


# --- publication update ----------------------------------------------------------------------------------


MANIFEST = f"{INSTRUCTORS}/pages.json"
JOURNAL = f"{INSTRUCTORS}/written.jsonl"  # pages that an update is writing, a line each: the list comes last
EARLIER = f"{INSTRUCTORS}/earlier"  # reports as they were released, by student and time


class PageRecord(BaseModel):
    """A page of a publication."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    digest: str
    made: datetime


class Manifest(BaseModel):
    """What a publication holds. It is for staff, like everything beside it.

    Attributes:
        book: The gradebook that it was made from: see `Gradebook.identity`.
        pages: The pages by their paths within the publication.
        grades: Student -> the grade on the pages, after what lateness costs; None: there is none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    assignment: str
    book: str
    pages: dict[str, PageRecord] = Field(default_factory=dict)
    grades: dict[str, float | None] = Field(default_factory=dict)


@dataclass(frozen=True)
class ChangedStudent:
    """A student whose pages have changed.

    Attributes:
        is_new, is_gone: The student had no page before, or has none any more.
        before, after: The grade, after what lateness costs; None: there is none.
    """

    student_id: str
    is_new: bool
    is_gone: bool
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Update:
    """What an update changed in a publication.

    Attributes:
        count: How many pages it has now.
        changed, removed: The paths of the pages that were written, and of those that were removed.
        students: The students whose pages these are, sorted.
    """

    count: int
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    students: tuple[ChangedStudent, ...]


def with_manifest(pages: Iterable[Page], about: Manifest, now: datetime) -> Iterator[Page]:
    """Pages, followed by the list of them.

    Args:
        about: The manifest, without its pages.
        now: When they are made.
    """
    records = {}
    for path, content in pages:
        records[path] = PageRecord(digest=_digest(content), made=now)
        yield path, content
    yield MANIFEST, _manifest_bytes(about, records)


Render = Callable[[Mapping[str, datetime], AbstractSet[str] | None], Iterator[Page]]
"""(path -> when a page was made; those that are asked for, None: all) -> the pages as they are now."""


def update(
    render: Render,
    about: Manifest,
    target: Path,
    now: datetime,
    students: AbstractSet[str] | None = None,
    *,
    known: AbstractSet[str],
    before: Callable[[], object],
) -> Update:
    """Bring a publication up to date.

    Each page is replaced as a whole, and the report that it replaces is kept for staff. Files that are not
    pages of the publication stay.

    Args:
        render: Makes the pages; those without an earlier time are made `now`.
        about: The manifest, without its pages, and with the grades of all who could have some.
        students: Whose pages are brought up to date; None: everybody's. Others' stay as they are, unless
            there is nothing of theirs any more.
        known: All ids that submissions have or had. Reports of others, who were forgotten, are not kept.
        before: Called before anything is written.

    Raises:
        UsageError: There is no publication, it is of another gradebook, or a page cannot be written.
    """
    told = published_before(target, about)
    cut_short = _written_before(target)
    old = told.model_copy(update={"pages": {**told.pages, **cut_short}})
    others = {} if students is None else _others(old, about, students)
    records: dict[str, PageRecord] = {
        path: record for path, record in old.pages.items() if _student_of(path) in others
    }
    grades = {one: grade for one, grade in about.grades.items() if students is None or one in students}
    about = about.model_copy(update={"grades": {**others, **grades}})
    stale = set()
    for path, content in render({path: record.made for path, record in old.pages.items()}, None):
        records[path] = PageRecord(digest=_digest(content), made=now)
        if path in old.pages and _is_unchanged(target, path, old.pages[path], records[path]):
            records[path] = old.pages[path]
        else:
            stale.add(path)
    before()
    for path, content in render({}, stale) if stale else ():
        records[path] = PageRecord(digest=_digest(content), made=now)
        _keep_earlier(target, path, old)
        _note_writing(target, path, records[path])
        _write(target, path, content)
    removed = sorted(old.pages.keys() - records.keys())
    for path in removed:
        if _student_of(path) in known:
            _keep_earlier(target, path, old)
        _remove(target, path)
    if stale or removed or cut_short or old.grades != about.grades:
        atomic.write(target / MANIFEST, _manifest_bytes(about, records))
    with atomic.explained(target / JOURNAL):
        (target / JOURNAL).unlink(missing_ok=True)
    changed = tuple(path for path in records if path in stale or path in cut_short)
    changed_students = _changed_students(told, about, {*changed, *removed}, records.keys())
    return Update(len(records), changed, tuple(removed), changed_students)


def _written_before(target: Path) -> dict[str, PageRecord]:
    """The pages that an update wrote which was cut short before it listed them, as far as they are there."""
    try:
        lines = (target / JOURNAL).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    written: dict[str, PageRecord] = {}
    for line in lines:
        with contextlib.suppress(ValueError, OSError):  # the last line may be torn, or its page not written
            noted: dict[str, PageRecord] = validator(dict[str, PageRecord]).validate_json(line)
            written |= {
                path: record
                for path, record in noted.items()
                if _digest((target / path).read_bytes()) == record.digest
            }
    return written


def _note_writing(target: Path, path: str, record: PageRecord) -> None:
    """Note a page before it is written, so that it is known whatever interrupts the update."""
    line = validator(dict[str, PageRecord]).dump_json({path: record})
    with atomic.explained(target / JOURNAL), (target / JOURNAL).open("ab") as journal:
        journal.write(line + b"\n")


def _others(old: Manifest, about: Manifest, students: AbstractSet[str]) -> dict[str, float | None]:
    """The students whose pages stay as they are -> the grade on them."""
    there = _students_of(old.pages.keys()) & about.grades.keys()
    return {student_id: old.grades.get(student_id) for student_id in sorted(there - students)}


def _student_of(path: str) -> str:
    """Whose page it is; empty for pages of the class."""
    parts = PurePosixPath(path).parts
    if parts[0] == STUDENTS and len(parts) > 2:
        return parts[1]
    return PurePosixPath(path).stem if parts[:2] == (INSTRUCTORS, ATTENTION) else ""


def _keep_earlier(target: Path, path: str, old: Manifest) -> None:
    """Keep the report that a student could read until now, if it is still there as it was released."""
    record = old.pages.get(path)
    if record is None or PurePosixPath(path).name != REPORT or not _student_of(path):
        return
    try:
        content = (target / path).read_bytes()
    except OSError:
        return
    if _digest(content) == record.digest:
        name = f"{record.made:%Y-%m-%dT%H%M%S%z}-{record.digest[:8]}.html"
        _write(target, f"{EARLIER}/{_student_of(path)}/{name}", content)


def published_before(target: Path, about: Manifest) -> Manifest:
    """The manifest of the publication in a folder.

    Args:
        about: What it must be of: the assignment and the gradebook.

    Raises:
        UsageError: There is no publication, or it is of another gradebook.
    """
    if target.suffix.lower() == ".zip":
        raise UsageError(f"{target}: --update works on a folder. Write a new zip, without --update.")
    if not target.is_dir():
        raise UsageError(f"{target}: there is no publication to update. Leave --update out to make one.")
    try:
        manifest = Manifest.model_validate_json((target / MANIFEST).read_bytes())
    except (OSError, ValueError):
        raise UsageError(
            f"{target} is not a publication that can be updated: {MANIFEST} is missing or damaged. "
            "Publish into a new folder. Nothing was written."
        ) from None
    if (manifest.assignment, manifest.book) != (about.assignment, about.book):
        raise UsageError(
            f"{target} was published from another gradebook (of '{manifest.assignment}'). Give its own --to. "
            "Nothing was written."
        )
    return manifest


def _is_unchanged(target: Path, path: str, old: PageRecord, new: PageRecord) -> bool:
    """Whether a page is the same as before, and is still there as it was written."""
    if old.digest != new.digest:
        return False
    try:
        return _digest((target / path).read_bytes()) == old.digest
    except OSError:
        return False


def _write(target: Path, path: str, content: bytes) -> None:
    place = target / path
    atomic.make_folder(place.parent)
    atomic.write(place, content)


def _remove(target: Path, path: str) -> None:
    parts = PurePosixPath(path).parts
    if ".." in parts or parts[:1] not in ((STUDENTS,), (INSTRUCTORS,)):
        return  # we wrote no such path
    place = target.joinpath(*parts)
    try:
        place.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{place} cannot be removed ({error.strerror}). Remove it by hand.") from None
    with contextlib.suppress(OSError):  # it is not empty
        place.parent.rmdir()


def _changed_students(
    old: Manifest, new: Manifest, changed: AbstractSet[str], paths: AbstractSet[str]
) -> tuple[ChangedStudent, ...]:
    before, after = _students_of(old.pages.keys()), _students_of(paths)
    return tuple(
        ChangedStudent(
            student_id=student_id,
            is_new=student_id not in before,
            is_gone=student_id not in after,
            before=old.grades.get(student_id),
            after=new.grades.get(student_id),
        )
        for student_id in sorted(_students_of(changed))
    )


def _students_of(paths: AbstractSet[str]) -> set[str]:
    """The students whose pages these are."""
    parts = (PurePosixPath(path).parts for path in paths)
    return {path_parts[1] for path_parts in parts if len(path_parts) > 2 and path_parts[0] == STUDENTS}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _manifest_bytes(about: Manifest, records: Mapping[str, PageRecord]) -> bytes:
    manifest = about.model_copy(update={"pages": dict(sorted(records.items()))})
    return (manifest.model_dump_json(indent=1) + "\n").encode("utf-8")


# --- class publication -----------------------------------------------------------------------------------


WAY = "publish"


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
    return frozenset(_students_of(published_before(target, about).pages.keys()))


def publish_class(session: ClassSession, request: PublicationRequest) -> PublishedClass:
    """Write the class page and the students' pages as the gradebook is now.

    Raises:
        UsageError: Something awaits a person and that is not allowed, nobody has a grade, or the pages
            cannot be written.
    """
    assignment, out, students = session.assignment, session.out, request.students
    snapshot = session.book.snapshot(attempts=assignment.compares_attempts)
    results = results_now(assignment, snapshot)
    download = summed(current_downloads(session.book, out, snapshot))
    pairs = [(result.evidence, result.score) for result in results]
    everybodys = {score.student_id: score.final for _, score in owned(pairs)}
    grades = {one: grade for one, grade in everybodys.items() if students is None or one in students}
    about = Manifest(assignment=assignment.id, book=session.book.identity(), grades=everybodys)
    earlier = published_before(request.to, about) if request.updates else None
    there = _students_of(earlier.pages.keys()) if earlier is not None else set[str]()
    if students is not None and not grades and students.isdisjoint(there):
        raise UsageError(
            f"None of these students has a grade. See {out / 'index.html'}. Nothing was written."
        )
    reasons = open_reasons(assignment, results, download, students)
    if reasons and not request.partial:
        raise UsageError(
            f"Not ready to hand out: {'; '.join(reasons)}. "
            f"See {out / 'index.html'}, or add --partial. Nothing was written."
        )
    now = session.clock()
    # a grade that its page withholds until the deadline is not released by it
    withheld = {score.student_id for _, score in pairs if score.withholds(now)}
    lacking: tuple[str, ...] = ()
    if assignment.review_required:
        lacking = _lacking_review((score for _, score in owned(pairs)), grades.keys() - withheld)
        grades = {one: grade for one, grade in grades.items() if one not in lacking}
        students = frozenset(grades)
        if not grades and not there:
            raise UsageError(
                "Nobody has reviewed these grades as they are, as the assignment demands: `grader review`. "
                "Nothing was written."
            )
    linked = students
    if students is not None and earlier is not None:
        linked = students | _others(earlier, about, students).keys()
    made = functools.partial(
        pages,
        assignment,
        results,
        session.book.images,
        now=now,
        download=download,
        similarity=_similarity(out, assignment.id),
        students=students,
        linked=linked,
    )
    seen = {one: grade for one, grade in grades.items() if one not in withheld}
    not_recorded = ""

    def release() -> None:
        nonlocal not_recorded
        not_recorded = release_problem(
            session.book, snapshot, results, seen, way=WAY, who=session.who, when=session.clock(), out=out
        )

    done = None
    if not request.updates:  # else what is there would be cleaned as if it were a publication
        require_new(request.to)
    note_written(session.book, [request.to], PUBLICATION)
    if request.updates:
        known = snapshot.evidence.keys() | snapshot.changed_ids().keys()
        done = update(
            lambda stamps, only: made(stamps=stamps, only=only),
            about,
            request.to,
            now,
            students,
            known=known,
            before=release,
        )
    else:
        about = about.model_copy(update={"grades": grades})
        publish(with_manifest(made(), about, now), request.to, now, before=release)
    asked = request.students
    without = left_out([pair for pair in pairs if asked is None or pair[1].student_id in asked])
    if lacking:
        without += (f"{listed(lacking)}: left out until somebody has reviewed them (`grader review`).",)
    told = unreviewed(score for _, score in owned(pairs) if score.student_id in grades)
    return PublishedClass(grades, done, without, told, not_recorded)


def _lacking_review(scores: Iterable[Score], among: AbstractSet[str]) -> tuple[str, ...]:
    """Those of some students whose grades nobody has reviewed as they are."""
    open_ones = (score for score in scores if score.student_id in among and not is_reviewed(score))
    return tuple(sorted(score.student_id for score in open_ones))


def _similarity(out: Path, assignment_id: str) -> tuple[SimilarityRecord, bytes] | None:
    """The record and the page that `grader similar` left in the folder; None unless both are there."""
    record, page = previous_similarity(out, assignment_id), out / SIMILARITY_PAGE
    return (record, page.read_bytes()) if record is not None and page.is_file() else None
