"""The account of a download: every file in it, with what became of it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from grader.domain.submission import AccountedFile, Fate, RefusedFile
from grader.lms.downloads import nameless

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
