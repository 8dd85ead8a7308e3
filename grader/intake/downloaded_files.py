"""Lists the files of a download, what became of each, and which attempt counts.

Files, archives and folders are listed with the student's own name for each, and no file is missing in the
account. Of several attempts at the same work, the last in time counts, and the reason says how the last one
was recognized. It never decides whose a file is.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from grader.domain.formatting import file_named
from grader.domain.submission import AccountedFile, Fate, RefusedFile
from grader.files.file_names import plain
from grader.intake.naming import LONG_NUMBER, clutter_reason, copy_mark, is_clutter
from grader.lms.downloads import read_name, without_person_names
from grader.lms.system import DownloadName

MANY = 20  # more lines of one kind become one
LONGEST = 1_000  # characters of a name that is shown: paths within archives are long


class Ledger:
    """The account while the files are gathered; whose a file is turns out later."""

    def __init__(self) -> None:
        self._lines: list[tuple[AccountedFile, str | None]] = []

    def note(
        self, name: str, fate: Fate, *, owner: str | None = None, reason: str = "", clutter: bool = False
    ) -> None:
        """Account for a file.

        Args:
            name: Where it lies in the download.
            owner: The key of the student's files that it is one of; None: it belongs to nobody.
            reason: A sentence.
            clutter: A computer made it for itself.
        """
        line = AccountedFile(_shown(name), fate, reason=_printable(reason), clutter=clutter)
        self._lines.append((line, owner))

    def accept(self, name: str, reason: str) -> None:
        """A file that belongs to nobody was useful after all.

        Args:
            name: Where it lies in the download.
            reason: A sentence.
        """
        accepted = AccountedFile(_shown(name), Fate.MATCHED, reason=_printable(reason))
        self._lines = [
            (accepted, None) if owner is None and line.name == accepted.name else (line, owner)
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
            ids: Owner -> the student's id.
        """
        lines = (replace(line, student_id=ids.get(owner) if owner else None) for line, owner in self._lines)
        return tuple(sorted(lines, key=lambda line: (line.name, line.fate)))


def _shown(name: str) -> str:
    """A file's name as people read it, without the names of people that an LMS put there."""
    return _printable(without_person_names(name))[:LONGEST]


def _printable(text: str) -> str:
    """A text in which a name may be that is no UTF-8, or has lines: nothing else could be stored or shown."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def totals(account: Iterable[AccountedFile]) -> dict[Fate, int]:
    """The number of files for each fate."""
    counts = Counter[Fate]()
    for line in account:
        counts[line.fate] += line.count
    return {fate: counts[fate] for fate in Fate}


def condensed(account: Iterable[AccountedFile]) -> tuple[AccountedFile, ...]:
    """The account, in which many files of one kind become one line; the counts include every file."""
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
        path: Its path on this machine.
        shown: Its path in the download.
        handed: What its name says; in it, the student's own name is in plain letters and digits.
        written_name: The student's own name as it was written.
    """

    path: Path
    shown: str
    handed: DownloadName
    written_name: str

    @property
    def name(self) -> str:
        """The student's own name for it, otherwise its name in the download."""
        return self.handed.name or self.path.name

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @property
    def is_archive(self) -> bool:
        """Whether it is to be unpacked."""
        return Path(self.name).suffix.lower() == ".zip" and not self.is_folder

    def with_reading(self, handed: DownloadName) -> "DownloadedItem":
        """The same item, with another reading of its name."""
        return replace(self, handed=replace(handed, name=plain(handed.name)), written_name=handed.name)

    def modified(self) -> float:
        """The latest time of modification of the file, or of the files in the folder, in seconds, or 0."""
        if not self.is_folder:
            return self.path.stat().st_mtime
        files = (path for path in self.path.rglob("*") if path.is_file() and not path.is_symlink())
        return max((path.stat().st_mtime for path in files), default=0.0)


def downloaded_item(path: Path, shown: str, order: int = 0) -> DownloadedItem:
    """The item at `path`, with what its name says.

    Args:
        shown: Where it lies in the download.
        order: The LMS's number of the upload that it came in.
    """
    reading = read_name(path.name)
    return DownloadedItem(path, shown, reading, "").with_reading(
        replace(reading, order=reading.order or order)
    )


def entries(
    folder: Path, shown: str, ledger: Ledger, owner: str | None = None, order: int = 0
) -> list[DownloadedItem]:
    """The items in a folder, by name; clutter and links are accounted for and left out.

    Args:
        shown: Where the folder lies in the download; empty for the download itself.
        owner: The key of the student's files that it is one of.
        order: The LMS's number of the upload that it came in.
    """
    items = []
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
            items.append(downloaded_item(path, name, order))
    return items


def files_of(path: Path, shown: str) -> Iterator[str]:
    """The paths in the download of all files below `path`; for a file, its own."""
    if path.is_symlink() or not path.is_dir():
        yield shown
        return
    for child in sorted(path.iterdir()):
        yield from files_of(child, f"{shown}/{child.name}")


# --- attempts --------------------------------------------------------------------------------------------


TELLING = 60.0  # seconds: copying and unpacking leave smaller differences, which mean nothing
_NUMBERED = re.compile(r"-\d{1,2}$")


def settled(
    siblings: Sequence[DownloadedItem],
) -> tuple[list[DownloadedItem], list[tuple[DownloadedItem, str]]]:
    """The files, archives and folders that count, and those that a later attempt supersedes, with the reason.

    Args:
        siblings: One student's items in one place. Names that differ only by the mark of a copy (`(1)`, `-2`,
            `copy`, `v2`, `attempt 2`) or by case are attempts at the same work.
    """
    counted: list[DownloadedItem] = []
    superseded: list[tuple[DownloadedItem, str]] = []
    for group in _groups_of_attempts(siblings):
        if not _are_attempts(group):
            counted += group
            continue
        last, why = latest(group) or _by_mark(group)
        counted.append(last)
        superseded += [
            (attempt, superseded_reason(attempt, last, why)) for attempt in group if attempt is not last
        ]
    return counted, superseded


def last_attempt(
    items: Sequence[DownloadedItem], others: Sequence[DownloadName]
) -> tuple[DownloadName | None, dict[DownloadedItem, str]]:
    """The last of the attempts that an LMS distinguishes, and the earlier ones' files with the reason.

    Args:
        items: One student's.
        others: Attempts that the LMS reports in other ways than by files.
    """
    attempts = [name for name in (*others, *(item.handed for item in items)) if name.attempt]
    if not attempts:
        return None, {}
    last = max(attempts, key=lambda name: name.attempt)
    before = [item for item in items if item.handed.attempt and item.handed.attempt != last.attempt]
    return last, {
        item: f"{item.name}: belongs to an earlier attempt. What counts is the one from {last.attempt}, "
        f"which {last.lms} received later."
        for item in before
    }


def latest(group: Sequence[DownloadedItem]) -> tuple[DownloadedItem, str] | None:
    """The last of several in time and the evidence for that, or None if nothing shows it."""
    orders = [item.handed.order for item in group]
    if all(orders) and len(set(orders)) > 1:
        latest_item = max(group, key=lambda item: (item.handed.order, item.shown))
        return latest_item, f"which {latest_item.handed.lms or 'the LMS'} received later"
    times = sorted(item.modified() for item in group)
    if times[-1] - times[-2] > TELLING:
        latest_item = max(group, key=lambda item: item.modified())
        return latest_item, "whose modification time is later (only a hint: nothing else shows it)"
    return None


def unclear(siblings: Sequence[DownloadedItem]) -> list[DownloadedItem]:
    """The items of which neither the LMS, nor time, nor a mark in the name shows which one counts.

    Args:
        siblings: The items in one place.
    """
    unclear_items: list[DownloadedItem] = []
    for group in _groups_of_attempts(siblings):
        if not _are_attempts(group) or latest(group):
            continue
        most = max(_mark(item)[1] for item in group)
        marked_last = [item for item in group if _mark(item)[1] == most]
        unclear_items += marked_last if len(marked_last) > 1 else []
    return unclear_items


def differing(siblings: Sequence[DownloadedItem]) -> tuple[str, ...]:
    """The names of attempts at the same work that have different contents."""
    return tuple(
        item.path.name
        for group in _groups_of_attempts(siblings)
        if _are_attempts(group) and len({content(other.path) for other in group}) > 1
        for item in group
    )


def content(path: Path) -> str:
    """SHA-256 of a file, or of all files in a folder with their names, hexadecimal."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    inside = sorted(
        file_inside
        for file_inside in path.rglob("*")
        if file_inside.is_file() and not file_inside.is_symlink()
    )
    lines = (f"{file_inside.relative_to(path)}\0{content(file_inside)}\n" for file_inside in inside)
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def superseded_reason(earlier: DownloadedItem, last: DownloadedItem, why: str) -> str:
    """The sentence about an attempt that does not count."""
    return f"{earlier.name}: is an earlier attempt. What counts is {file_named(last.name)}, {why}."


def _by_mark(group: Sequence[DownloadedItem]) -> tuple[DownloadedItem, str]:
    marks = {item.shown: _mark(item)[1] for item in group}
    last = max(group, key=lambda item: (marks[item.shown], item.shown))
    if len(set(marks.values())) > 1:
        return last, "by the mark in its name"
    return last, "though nothing shows which is later: a person will take a look"


def _mark(item: DownloadedItem) -> tuple[str, int]:
    return copy_mark(item.name if item.is_folder else Path(item.name).stem)


def _group_key(item: DownloadedItem) -> tuple[str, str, bool]:
    folder = item.is_folder
    words = re.sub(r"[\s_.-]+", "_", _mark(item)[0]).strip("_").casefold()
    return words, "" if folder else Path(item.name).suffix.lower(), folder


def _groups_of_attempts(siblings: Sequence[DownloadedItem]) -> Iterable[Sequence[DownloadedItem]]:
    """Groups of items whose names differ only by the mark of a copy or by case."""
    groups: dict[tuple[str, str, bool], list[DownloadedItem]] = {}
    for item in siblings:
        groups.setdefault(_group_key(item), []).append(item)
    return groups.values()


def _are_attempts(group: Sequence[DownloadedItem]) -> bool:
    """Whether these are attempts: `part-1` and `part-2` are not, unless the mark follows a student's id."""
    if len(group) == 1:
        return False
    if any(_mark(item)[1] == 0 or LONG_NUMBER.search(_mark(item)[0]) for item in group):
        return True
    return not all(_NUMBERED.search(Path(item.name).stem) for item in group)
