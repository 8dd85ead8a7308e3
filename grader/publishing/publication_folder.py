"""The folder or zip of a publication: written anew, or brought up to date page by page.

A publication lists its pages, each with a digest and the time when it was made. A page has not changed if
making it again with that time gives the same page; only others are written again, and it is known whose. It
never decides what a page says, or whose pages there are.
"""

import contextlib
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field

from grader.domain.errors import UsageError
from grader.files import atomic
from grader.files.file_names import REPORT
from grader.files.stored_records import validator
from grader.files.zip_archive import zipped
from grader.publishing.released_class_pages import ATTENTION, INSTRUCTORS, STUDENTS, Page

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

    def students(self) -> set[str]:
        """Those who have pages."""
        return _students_of(self.pages.keys())


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
    others = {} if students is None else students_who_stay(old, about, students)
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


def students_who_stay(old: Manifest, about: Manifest, students: AbstractSet[str]) -> dict[str, float | None]:
    """The students whose pages stay as they are -> the grade on them."""
    there = old.students() & about.grades.keys()
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
    before, after = old.students(), _students_of(paths)
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
