"""Notebook magics, shell lines and help questions: replaced line by line, so that Python is left.

It goes by the look of a line outside of strings and brackets. Code cells with an unknown cell magic are left
out whole; lines set aside have a reason, except the student's own checks. `source` decides whether a cell
needs this: only one that does not parse as it is.

Tests: tests/analysis/test_source_reading.py
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.domain.quoting import as_code

# the student's own checks, which are not part of a homework: nothing is said of them
OWN_CELL = re.compile(r"^%%check\b")
OWN_LINE = re.compile(r"^\s*%(?:re)?load_ext\s+grader\s*(?:#.*)?$")
KEEP_BODY = {"time", "timeit", "capture", "prun", "python", "python3"}
LINE = re.compile(r"^(?P<indent>\s*)(?:%|!|\?)")
QUESTION = re.compile(r"^(?P<indent>\s*)[\w.\[\]'\"*]+\s*\?{1,2}\s*(?:#.*)?$")
ASSIGNED = re.compile(r"^(?P<indent>\s*)[\w.,\s\[\]'\"]+=\s*(?:!|%[A-Za-z])")
TIMED = re.compile(r"^(?P<indent>\s*)%time\s+(?P<rest>[^\s].*)$")
WRITTEN = re.compile(
    r"^\s*%%(?:writefile|file)\s+(?P<append>-a\s+|--append\s+)?[\"']?(?P<name>[\w./-]+\.py)[\"']?\s*$"
)
RUN = re.compile(r"^\s*(?:%run|!\s*python3?)\s+(?:-\w+\s+)*[\"']?(?P<name>[\w./-]+\.py)\b")
TOKEN = re.compile(r"\\.|'''|\"\"\"|'|\"|#|[\[({]|[\])}]", re.DOTALL)


@dataclass(frozen=True)
class SetAside:
    """A line that is not Python: 1-based within the cell, its text, and what it is."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class Plain:
    """A cell's Python, with as many lines as the cell has, and what was set aside."""

    code: str
    set_aside: tuple[SetAside, ...]


@dataclass(frozen=True)
class WrittenFile:
    """A module that a cell writes: `%%writefile helpers.py`.

    Attributes:
        code: With as many lines as the cell has.
    """

    name: str
    appends: bool
    code: str


def written_file(text: str) -> WrittenFile | None:
    """The module that a cell writes, if it does."""
    lines = text.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    found = WRITTEN.match(lines[first])
    if found is None:
        return None
    code = "\n" * (first + 1) + "\n".join(lines[first + 1 :])
    return WrittenFile(found["name"].removeprefix("./"), found["append"] is not None, code)


def run_file(line: str, own: Iterable[str]) -> str | None:
    """Which of the student's own modules a line executes as a script: `%run train.py`, `!python train.py`."""
    found = RUN.match(line)
    name = found["name"].removeprefix("./") if found else None
    return name if name in set(own) else None


def plain(text: str, own: Iterable[str] = ()) -> Plain:
    """The Python in `text`: every other line becomes `pass` or blank, so that line numbers stay right.

    Args:
        own: Names of the student's own modules; a line that executes one imports all that is in it.
    """
    lines = text.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    aside: list[SetAside] = []
    if OWN_CELL.match(lines[first]):
        lines[first] = ""
    elif lines[first].startswith("%%"):
        magic = re.split(r"[^A-Za-z0-9_]", lines[first][2:], maxsplit=1)[0]
        reason = f"the notebook magic {as_code(f'%%{magic}')} is not executed"
        aside.append(SetAside(first + 1, lines[first].strip(), reason))
        if magic not in KEEP_BODY:
            return Plain("\n" * (len(lines) - 1), tuple(aside))
        lines[first] = ""
    state = _State()
    index = 0
    while index < len(lines):
        line = lines[index]
        kept = None if state.inside else _replacement(line)
        executed = None if kept is None else run_file(line, own)
        if executed is not None:
            dotted = executed.removesuffix(".py").replace("/", ".")
            lines[index] = f"from {dotted} import *"
        elif kept is None:
            state.read(line)
        else:
            if not OWN_LINE.match(line):
                aside.append(SetAside(index + 1, line.strip(), _reason(line)))
            lines[index] = kept
            while line.rstrip().endswith("\\") and index + 1 < len(lines):
                index += 1
                line, lines[index] = lines[index], ""
        index += 1
    return Plain("\n".join(lines), tuple(aside))


def _replacement(line: str) -> str | None:
    """What stands in place of a line that is not Python; None for one that may be."""
    if timed := TIMED.match(line):
        return timed["indent"] + timed["rest"]
    for pattern in (LINE, QUESTION, ASSIGNED):
        if found := pattern.match(line):
            return found["indent"] + "pass"
    return None


def _reason(line: str) -> str:
    stripped = line.strip()
    if stripped.startswith("!") or re.search(r"=\s*!", stripped):
        return "a shell command is not executed"
    if stripped.startswith("%") or re.search(r"=\s*%", stripped):
        return "a notebook magic is not executed"
    return "a question for help is not executed"


class _State:
    """Whether the next line continues a string, a bracket or a backslash."""

    def __init__(self) -> None:
        self._string: str | None = None
        self._depth = 0
        self._continued = False

    @property
    def inside(self) -> bool:
        return self._string is not None or self._depth > 0 or self._continued

    def read(self, line: str) -> None:
        """Takes a line of Python into account."""
        self._continued = False
        for found in TOKEN.finditer(line):
            token = found[0]
            if self._string is not None:
                if token == self._string:
                    self._string = None
            elif token == "#":
                break
            elif token[0] in "'\"":
                self._string = token
            elif token in "([{":
                self._depth += 1
            elif token in ")]}":
                self._depth = max(0, self._depth - 1)
        else:
            self._continued = line.endswith("\\")
        if self._string is not None and len(self._string) == 1 and not line.endswith("\\"):
            self._string = None
