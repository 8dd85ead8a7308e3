"""The pages of a publication, as students may read them: exactly what was released, and nothing beside it.

A page is read only if the publication lists it with this content. So a page that somebody changed by hand,
or that is just being renewed, is not shown, and no path leads out of a student's own folder.
"""

import threading
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from grader.domain.errors import UsageError
from grader.files.file_names import REPORT, STUDENT_FILES
from grader.publishing.publication_folder import MANIFEST, Manifest
from grader.publishing.released_class_pages import STUDENTS

_Version = tuple[int, int, int]


class PageNotReleased(UsageError):
    """There is no such page for the student now."""

    def __init__(self) -> None:
        super().__init__("There is no such page, or it is just being renewed. Try again in a minute.")


@dataclass
class ReleasedPages:
    """The students' pages of a published folder. It may be used by several threads.

    Attributes:
        folder: As `grader publish --to` wrote it.
    """

    folder: Path
    _read: tuple[_Version, Manifest] | None = None
    _thread: threading.Lock = field(default_factory=threading.Lock)

    def manifest(self) -> Manifest:
        """The list of its pages, as it is at this moment.

        Raises:
            UsageError: The folder is no publication.
        """
        file = self.folder / MANIFEST
        with self._thread:
            try:
                stat = file.stat()
                version = stat.st_mtime_ns, stat.st_ino, stat.st_size
                if self._read is None or self._read[0] != version:
                    self._read = version, Manifest.model_validate_json(file.read_bytes())
            except (OSError, ValueError):
                raise UsageError(
                    f"{self.folder} is not a published folder: {MANIFEST} is missing or damaged. Give the "
                    "folder that `grader publish --to` wrote (no zip)."
                ) from None
            return self._read[1]

    def require_of(self, assignment_id: str, book: str) -> None:
        """Check that it was published from a gradebook.

        Args:
            book: The gradebook's identity.

        Raises:
            UsageError: It was not, or is no publication.
        """
        manifest = self.manifest()
        if (manifest.assignment, manifest.book) != (assignment_id, book):
            raise UsageError(
                f"{self.folder} was published from another gradebook (of '{manifest.assignment}'). Give the "
                "folder that was published from these results."
            )

    def students(self) -> tuple[str, ...]:
        """The students who have a report, sorted."""
        listed = self.manifest().pages
        begins, ends = f"{STUDENTS}/", f"/{REPORT}"
        found = (path[len(begins) : -len(ends)] for path in listed if path.endswith(ends))
        return tuple(sorted(student for student in found if f"{begins}{student}{ends}" in listed))

    def names(self, student_id: str) -> tuple[str, ...]:
        """The names of the student's pages, of `STUDENT_FILES`."""
        listed = self.manifest().pages
        return tuple(name for name in STUDENT_FILES if f"{STUDENTS}/{student_id}/{name}" in listed)

    def content(self, student_id: str, name: str) -> bytes:
        """A page of the student as it was released.

        Args:
            name: One of `STUDENT_FILES`; nothing else is looked for.

        Raises:
            PageNotReleased: There is none, or it is not as it was released.
        """
        if name not in STUDENT_FILES:
            raise PageNotReleased
        path = f"{STUDENTS}/{student_id}/{name}"
        record = self.manifest().pages.get(path)
        if record is None:
            raise PageNotReleased
        try:
            content = (self.folder / STUDENTS / student_id / name).read_bytes()
        except OSError:
            raise PageNotReleased from None
        if sha256(content).hexdigest() != record.digest:
            raise PageNotReleased
        return content

    def released_at(self, student_id: str) -> datetime | None:
        """When the student's report that stands there was made; None: there is none."""
        record = self.manifest().pages.get(f"{STUDENTS}/{student_id}/{REPORT}")
        return None if record is None else record.made
