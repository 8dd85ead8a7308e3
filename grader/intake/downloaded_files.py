"""What lies in a download: its files, what became of each, and which attempt counts.

It lists files, archives and folders, each with the student's own name for it, and keeps the account in
which no file is missing. Of several attempts at the same, the last in time counts, and what says which is
the last is told, too. It never decides whose a file is.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from grader.domain.formatting import file_named
from grader.domain.submission import AccountedFile, Fate, RefusedFile
from grader.files.file_names import plain
from grader.intake.naming import LONG_NUMBER, clutter_reason, copy_mark, is_clutter
from grader.lms.downloads import nameless, read_name
from grader.lms.system import DownloadName

MANY = 20  # lines of one kind, which become one
LONGEST = 1_000  # characters of a name that is shown: paths within archives are long


class Ledger:
    """The account while the files are gathered: whose a file is turns out later."""

    def __init__(self) -> None:
        self._lines: list[tuple[AccountedFile, str | None]] = []

    def note(
        self, name: str, fate: Fate, *, owner: str | None = None, reason: str = "", clutter: bool = False
    ) -> None:
        """Account for a file.

        Args:
            name: Where it lies in the download.
            owner: The key of the heap that it belongs to, None for a file of nobody.
            reason: A sentence.
            clutter: A computer made it for itself.
        """
        self._lines.append((AccountedFile(_shown(name), fate, reason=reason, clutter=clutter), owner))

    def accept(self, name: str, reason: str) -> None:
        """A file of nobody was of use after all.

        Args:
            name: Where it lies in the download.
            reason: A sentence.
        """
        taken = AccountedFile(_shown(name), Fate.MATCHED, reason=reason)
        self._lines = [
            (taken, None) if owner is None and line.name == taken.name else (line, owner)
            for line, owner in self._lines
        ]

    def unmatched(self) -> tuple[RefusedFile, ...]:
        """The files that belong to nobody, without those that computers make for themselves."""
        return tuple(
            RefusedFile(line.name, line.reason)
            for line, owner in self._lines
            if owner is None and line.fate is Fate.REFUSED and not line.clutter
        )

    def accounted(self, ids: Mapping[str, str]) -> tuple[AccountedFile, ...]:
        """All files, by name.

        Args:
            ids: The student's id for each owner.
        """
        lines = (replace(line, student_id=ids.get(owner) if owner else None) for line, owner in self._lines)
        return tuple(sorted(lines, key=lambda line: (line.name, line.fate)))


def _shown(name: str) -> str:
    """A file's name as people read it, without names of people that an LMS put there."""
    return "".join(letter if letter.isprintable() else "?" for letter in nameless(name))[:LONGEST]


def totals(account: Iterable[AccountedFile]) -> dict[Fate, int]:
    """How many files became what."""
    counts = Counter[Fate]()
    for line in account:
        counts[line.fate] += line.count
    return {fate: counts[fate] for fate in Fate}


def condensed(account: Iterable[AccountedFile]) -> tuple[AccountedFile, ...]:
    """The account with a data set's thousand images in one line each: no file is left out of the counts."""
    kinds: dict[tuple[str | None, Fate, str], list[AccountedFile]] = {}
    for line in account:
        suffix = PurePosixPath(line.name).suffix.lower()
        kinds.setdefault((line.student_id, line.fate, suffix), []).append(line)
    lines: list[AccountedFile] = []
    for (student_id, fate, _), alike in kinds.items():
        if len(alike) <= MANY:
            lines += alike
            continue
        first, count = alike[0], sum(line.count for line in alike)
        lines.append(AccountedFile(f"{first.name} and others", fate, student_id, first.reason, count))
    return tuple(sorted(lines, key=lambda line: (line.name, line.fate)))


# --- downloaded files ------------------------------------------------------------------------------------


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


# --- attempts --------------------------------------------------------------------------------------------


# Copying and unpacking leave times that differ by seconds and say nothing.
TELLING = 60.0  # seconds
_NUMBERED = re.compile(r"-\d{1,2}$")


def settled(
    siblings: Sequence[DownloadedItem],
) -> tuple[list[DownloadedItem], list[tuple[DownloadedItem, str]]]:
    """The files, archives and folders that count, and those that a later attempt supersedes, with the reason.

    Args:
        siblings: One student's, as they lie beside each other. Names that differ only by the mark of a copy
            (`(1)`, `-2`, `copy`, `v2`, `attempt 2`) or by letters' case are attempts at the same.
    """
    kept: list[DownloadedItem] = []
    superseded: list[tuple[DownloadedItem, str]] = []
    for group in _alike(siblings):
        if not _are_attempts(group):
            kept += group
            continue
        last, why = latest(group) or _by_mark(group)
        kept.append(last)
        superseded += [(one, told(one, last, why)) for one in group if one is not last]
    return kept, superseded


def last_attempt(
    items: Sequence[DownloadedItem], others: Sequence[DownloadName]
) -> tuple[DownloadName | None, dict[DownloadedItem, str]]:
    """The last of the attempts that an LMS tells apart, and the files of those before it, with the reason.

    Args:
        items: One student's.
        others: What the LMS tells of attempts by other than their files.
    """
    attempts = [one for one in (*others, *(item.handed for item in items)) if one.attempt]
    if not attempts:
        return None, {}
    last = max(attempts, key=lambda one: one.attempt)
    before = [item for item in items if item.handed.attempt and item.handed.attempt != last.attempt]
    return last, {
        item: f"{item.name}: is of an earlier attempt. What counts is the one of {last.attempt}, which "
        f"{last.lms} received later."
        for item in before
    }


def latest(group: Sequence[DownloadedItem]) -> tuple[DownloadedItem, str] | None:
    """The last of several in time and what says so, or None where nothing does."""
    orders = [one.handed.order for one in group]
    if all(orders) and len(set(orders)) > 1:
        last = max(group, key=lambda one: (one.handed.order, one.shown))
        return last, f"which {last.handed.lms or 'the LMS'} received later"
    times = sorted(one.modified() for one in group)
    if times[-1] - times[-2] > TELLING:
        last = max(group, key=lambda one: one.modified())
        return last, "whose time of modification is later (only a hint: nothing else tells)"
    return None


def unclear(siblings: Sequence[DownloadedItem]) -> list[DownloadedItem]:
    """Those of which nothing tells which counts: neither the LMS, nor time, nor a mark in the name.

    Args:
        siblings: As they lie beside each other.
    """
    found: list[DownloadedItem] = []
    for group in _alike(siblings):
        if not _are_attempts(group) or latest(group):
            continue
        most = max(_mark(one)[1] for one in group)
        last = [one for one in group if _mark(one)[1] == most]
        found += last if len(last) > 1 else []
    return found


def differing(siblings: Sequence[DownloadedItem]) -> tuple[str, ...]:
    """The names of those that are attempts at the same and hold something else."""
    return tuple(
        one.path.name
        for group in _alike(siblings)
        if _are_attempts(group) and len({content(each.path) for each in group}) > 1
        for one in group
    )


def content(path: Path) -> str:
    """SHA-256 of a file, or of all files in a folder with their names, hexadecimal."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    inside = sorted(one for one in path.rglob("*") if one.is_file() and not one.is_symlink())
    lines = (f"{one.relative_to(path)}\0{content(one)}\n" for one in inside)
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def told(earlier: DownloadedItem, last: DownloadedItem, why: str) -> str:
    """The sentence about an attempt that does not count."""
    return f"{earlier.name}: is an earlier attempt. What counts is {file_named(last.name)}, {why}."


def _by_mark(group: Sequence[DownloadedItem]) -> tuple[DownloadedItem, str]:
    marks = {one.shown: _mark(one)[1] for one in group}
    last = max(group, key=lambda one: (marks[one.shown], one.shown))
    if len(set(marks.values())) > 1:
        return last, "by the mark in its name"
    return last, "though nothing tells which is later: a person has a look"


def _mark(one: DownloadedItem) -> tuple[str, int]:
    return copy_mark(one.name if one.path.is_dir() else Path(one.name).stem)


def _likeness(one: DownloadedItem) -> tuple[str, str, bool]:
    folder = one.path.is_dir()
    words = re.sub(r"[\s_.-]+", "_", _mark(one)[0]).strip("_").casefold()
    return words, "" if folder else Path(one.name).suffix.lower(), folder


def _alike(siblings: Sequence[DownloadedItem]) -> Iterable[Sequence[DownloadedItem]]:
    """Those whose names differ by the mark of a copy or by letters' case alone, together."""
    groups: dict[tuple[str, str, bool], list[DownloadedItem]] = {}
    for one in siblings:
        groups.setdefault(_likeness(one), []).append(one)
    return groups.values()


def _are_attempts(group: Sequence[DownloadedItem]) -> bool:
    """Whether these are attempts: `part-1` and `part-2` are not, unless a student's id is before the mark."""
    if len(group) == 1:
        return False
    if any(_mark(one)[1] == 0 or LONG_NUMBER.search(_mark(one)[0]) for one in group):
        return True
    return not all(_NUMBERED.search(Path(one.name).stem) for one in group)
