"""What lies in a download: files, archives and folders, each with the student's own name for it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from grader.domain.submission import Fate
from grader.files.names import plain
from grader.intake.file_ledger import Ledger
from grader.intake.naming import clutter_reason, is_clutter
from grader.lms.downloads import read_name
from grader.lms.system import DownloadName


@dataclass(frozen=True)
class DownloadedItem:
    """A file, an archive or a folder.

    Attributes:
        path: Where it is on this machine.
        shown: Where it lies in the download.
        handed: What its name tells; the student's own name is in ordinary letters and digits there.
        own: The student's own name as it was written.
    """

    path: Path
    shown: str
    handed: DownloadName
    own: str

    @property
    def name(self) -> str:
        """The student's own name for it, else the name that it has in the download."""
        return self.handed.name or self.path.name

    @property
    def is_archive(self) -> bool:
        """Whether it is to be unpacked."""
        return Path(self.name).suffix.lower() == ".zip" and not self.path.is_dir()

    def told(self, handed: DownloadName) -> "DownloadedItem":
        """The same with what its name tells, in place of what was known of it."""
        return replace(self, handed=replace(handed, name=plain(handed.name)), own=handed.name)

    def modified(self) -> float:
        """The latest time of modification of the file, or of the files in the folder, in seconds; or 0."""
        if not self.path.is_dir():
            return self.path.stat().st_mtime
        files = (path for path in self.path.rglob("*") if path.is_file() and not path.is_symlink())
        return max((path.stat().st_mtime for path in files), default=0.0)


def found(path: Path, shown: str, order: int = 0) -> DownloadedItem:
    """What the name of `path` tells.

    Args:
        shown: Where it lies in the download.
        order: The LMS's number of the upload that it came in.
    """
    told = read_name(path.name)
    return DownloadedItem(path, shown, told, "").told(replace(told, order=told.order or order))


def entries(
    folder: Path, shown: str, ledger: Ledger, owner: str | None = None, order: int = 0
) -> list[DownloadedItem]:
    """What lies in a folder, by name; clutter and links are accounted for and left.

    Args:
        shown: Where the folder lies in the download; empty for the download itself.
        owner: The key of the heap that it belongs to.
        order: The LMS's number of the upload that it came in.
    """
    kept = []
    for path in sorted(folder.iterdir()):
        name = f"{shown}/{path.name}" if shown else path.name
        linked = path.is_symlink()
        if is_clutter(Path(path.name)):
            for file in files_of(path, name):
                reason = clutter_reason(path.name)
                ledger.note(file, Fate.REFUSED, owner=owner, reason=reason, clutter=True)
        elif linked or not (path.is_dir() or path.is_file()):
            reason = f"{path.name}: is a link or not a file. Hand in the file itself."
            ledger.note(name, Fate.REFUSED, owner=owner, reason=reason)
        else:
            kept.append(found(path, name, order))
    return kept


def files_of(path: Path, shown: str) -> Iterator[str]:
    """Where the files below `path` lie in the download; of a file, itself."""
    if path.is_symlink() or not path.is_dir():
        yield shown
        return
    for child in sorted(path.iterdir()):
        yield from files_of(child, f"{shown}/{child.name}")
