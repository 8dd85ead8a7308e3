"""What a distribution gives away of the course: lines and sentences that only instructors may see.

A program shares short lines with any other (`optimizer.step()`), so what counts is one long line, two shorter
ones that follow each other, or a sentence, however it is wrapped.
"""

import ast
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from grader.files.known_folders import is_public_checks

LONG_LINE = 50
SHORT_LINE = 14
SENTENCE = 40
_IMPORTED = re.compile(r"\w+,")  # a line of an import in parentheses
_TEXTS = {".py", ".toml", ".md"}


class Answers:
    """The lines and sentences of a course that students must not have."""

    def __init__(self, course: Path, assignment_id: str) -> None:
        """Reads a course.

        Args:
            course: Its folder.
            assignment_id: Of the assignment whose reference, forms and template are read.
        """
        public = _lines_of(course / "template" / assignment_id)
        self.lines: dict[str, str] = {}
        self.pairs: dict[tuple[str, str], str] = {}
        self.sentences: dict[str, str] = {}
        for path in _files(course / "reference" / assignment_id):
            if path.name == "student_readme.md" or is_public_checks(path.name):
                continue
            text, name = path.read_text("utf-8"), path.relative_to(course).as_posix()
            kept = [line for line in _significant(text) if line not in public]
            self.lines |= {line: name for line in kept if len(line) >= LONG_LINE}
            self.pairs |= dict.fromkeys(pairwise(kept), name)
            self.sentences |= dict.fromkeys(_sentences(text, path.suffix), name)
        shown = _words("\n".join(public))
        self.sentences = {each: name for each, name in self.sentences.items() if each not in shown}

    def given_away(self, files: dict[str, bytes]) -> list[str]:
        """Sentences: which file of a distribution holds what of which file of the course.

        Args:
            files: Name -> content.
        """
        leaks = []
        for name, content in files.items():
            text = content.decode("utf-8", errors="replace")
            lines = list(_significant(text))
            leaks += [f"{name}: {line!r} of {self.lines[line]}" for line in lines if line in self.lines]
            leaks += [
                f"{name}: {pair} of {self.pairs[pair]}" for pair in pairwise(lines) if pair in self.pairs
            ]
            words = _words(text)
            leaks += [
                f"{name}: {sentence!r} of {source}"
                for sentence, source in self.sentences.items()
                if sentence in words
            ]
        return leaks


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _TEXTS and "__pycache__" not in path.parts:
            yield path


def _lines_of(folder: Path) -> set[str]:
    """The significant lines of a folder's files, notebooks included."""
    lines = {line for path in _files(folder) for line in _significant(path.read_text("utf-8"))}
    for path in folder.glob("*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            lines.update(_significant("".join(cell["source"])))
    return lines


def _significant(text: str) -> Iterator[str]:
    """The lines that say something, stripped: no imports, no brackets that close."""
    for line in text.splitlines():
        line = line.strip()
        is_import = line.startswith(("import ", "from ")) or _IMPORTED.fullmatch(line)
        if len(line) >= SHORT_LINE and not is_import and not line.startswith("def __init__"):
            yield line


def _sentences(text: str, suffix: str) -> Iterator[str]:
    """The sentences of a file's docstrings, strings and texts, in `_words`' form."""
    if suffix == ".py":
        constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        strings = [value for value in constants if isinstance(value, str)]
    else:
        strings = re.findall(r'"([^"\n]+)"', text)
    for string in strings:
        for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", string):
            words = _words(sentence)
            if len(words) >= SENTENCE and words.count(" ") >= 4:
                yield words


def _words(text: str) -> str:
    """The text without what wrapping adds: quotation marks between pieces of a string, and blanks."""
    return " ".join(re.sub(r"[\"'#]", " ", re.sub(r"([\"'])\s*\n\s*[frb]?\1", "", text)).split())
