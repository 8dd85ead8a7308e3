"""Several attempts at the same: the last in time counts, and what says which is the last is said too."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.domain.quoting import file_named
from grader.intake.downloaded_files import DownloadedItem
from grader.intake.naming import LONG_NUMBER, copy_mark
from grader.lms.system import DownloadName

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
