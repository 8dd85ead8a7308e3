"""A publication brought up to date: only pages that say something else are written, and it is told whose.

A publication lists its pages, each with a digest and when it was made. A page says the same if it comes out
the same when it is made with that time again.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field

from grader.domain.errors import UsageError
from grader.files import atomic
from grader.publishing.publication import INSTRUCTORS, STUDENTS, Page

MANIFEST = f"{INSTRUCTORS}/pages.json"


class PageRecord(BaseModel):
    """A page of a publication."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    digest: str
    made: datetime


class Manifest(BaseModel):
    """What a publication holds. It is for staff, as is all that lies beside it.

    Attributes:
        book: Of which gradebook it is: see `Gradebook.identity`.
        pages: By their paths within the publication.
        grades: Student -> the grade that the pages tell, after what lateness costs; None: none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    assignment: str
    book: str
    pages: dict[str, PageRecord] = Field(default_factory=dict)
    grades: dict[str, float | None] = Field(default_factory=dict)


@dataclass(frozen=True)
class ChangedStudent:
    """A student whose pages say something else now.

    Attributes:
        is_new, is_gone: The student had no page before, or has none any more.
        before, after: The grade, after what lateness costs; None: none.
    """

    student_id: str
    is_new: bool
    is_gone: bool
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Update:
    """What became of a publication.

    Attributes:
        count: How many pages it has now.
        changed: The paths of those that were written, and of those that were removed.
        students: Whose pages they are, sorted.
    """

    count: int
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    students: tuple[ChangedStudent, ...]


def with_manifest(found: Iterable[Page], about: Manifest, now: datetime) -> Iterator[Page]:
    """Pages, and the list of them at last.

    Args:
        about: What is known of the publication before it has pages.
        now: When they are made.
    """
    records = {}
    for path, content in found:
        records[path] = PageRecord(digest=_digest(content), made=now)
        yield path, content
    yield MANIFEST, _text(about, records)


Render = Callable[[Mapping[str, datetime], AbstractSet[str] | None], Iterator[Page]]
"""(path -> when a page was made; those that are asked for, None: all) -> the pages as they are now."""


def update(render: Render, about: Manifest, target: Path, now: datetime) -> Update:
    """Bring a publication up to date.

    Each page is replaced whole. What lies there and is not a page of the publication stays.

    Args:
        render: Makes the pages; those of which it is not told when they were made are made `now`.
        about: What is known of the publication before it has pages.

    Raises:
        UsageError: There is no publication, or it is another one's, or the disk does not take a page.
    """
    old = _manifest(target, about)
    records: dict[str, PageRecord] = {}
    stale = set()
    for path, content in render({path: record.made for path, record in old.pages.items()}, None):
        records[path] = PageRecord(digest=_digest(content), made=now)
        if path in old.pages and _is_there(target, path, old.pages[path], records[path]):
            records[path] = old.pages[path]
        else:
            stale.add(path)
    for path, content in render({}, stale) if stale else ():
        records[path] = PageRecord(digest=_digest(content), made=now)
        _write(target, path, content)
    removed = sorted(old.pages.keys() - records.keys())
    for path in removed:
        _remove(target, path)
    if stale or removed or old.grades != about.grades:
        atomic.write(target / MANIFEST, _text(about, records))
    changed = tuple(path for path in records if path in stale)
    students = _students(old, about, {*changed, *removed}, records.keys())
    return Update(len(records), changed, tuple(removed), students)


def _manifest(target: Path, about: Manifest) -> Manifest:
    if target.suffix.lower() == ".zip":
        raise UsageError(f"{target}: --update works on a folder. Write a new zip, without --update.")
    if not target.is_dir():
        raise UsageError(f"{target}: there is no publication to update. Leave --update out to make one.")
    try:
        found = Manifest.model_validate_json((target / MANIFEST).read_bytes())
    except (OSError, ValueError):
        raise UsageError(
            f"{target} is not a publication that can be updated: {MANIFEST} is missing or damaged. "
            "Publish into a new folder. Nothing was written."
        ) from None
    if (found.assignment, found.book) != (about.assignment, about.book):
        raise UsageError(
            f"{target} was published from another gradebook (of '{found.assignment}'). Give its own --to. "
            "Nothing was written."
        )
    return found


def _is_there(target: Path, path: str, old: PageRecord, new: PageRecord) -> bool:
    """Whether a page says the same as before, and lies there as it was written."""
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


def _students(
    old: Manifest, new: Manifest, changed: AbstractSet[str], paths: AbstractSet[str]
) -> tuple[ChangedStudent, ...]:
    before, after = _whose(old.pages.keys()), _whose(paths)
    return tuple(
        ChangedStudent(
            student_id=student_id,
            is_new=student_id not in before,
            is_gone=student_id not in after,
            before=old.grades.get(student_id),
            after=new.grades.get(student_id),
        )
        for student_id in sorted(_whose(changed))
    )


def _whose(paths: AbstractSet[str]) -> set[str]:
    """The students whose pages they are."""
    parts = (PurePosixPath(path).parts for path in paths)
    return {one[1] for one in parts if len(one) > 2 and one[0] == STUDENTS}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _text(about: Manifest, records: Mapping[str, PageRecord]) -> bytes:
    whole = about.model_copy(update={"pages": dict(sorted(records.items()))})
    return (whole.model_dump_json(indent=1) + "\n").encode("utf-8")
