"""Which files beside a homework its imports speak of.

It goes by words alone and executes or parses nothing: it may name a file too many, and never one too few.
Which of them are really part of the homework, `grader.analysis.joining` decides.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

MOST_MODULES = 60
DEEPEST = 4  # folders below the homework's own
_IMPORTS = re.compile(rb"^.*\bimport\b\s*\([^)]*\)|^.*\bimport\b.*$|^.*\.py\b.*$", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_SKIPPED = {"__pycache__", "site-packages", "node_modules", "handin", "checks"}


def spoken_of(code: bytes, others: Mapping[str, bytes]) -> tuple[str, ...]:
    """The names of the files that code, or one of these files, may import.

    Args:
        code: A script, or a notebook as it is stored.
        others: Name, with the folders before it (`parts/attention.py`) -> content.

    Returns:
        In the order of `others`.
    """
    found: set[str] = set()
    unread = [code]
    while unread:
        words = _imported_words(unread.pop())
        for name, content in others.items():
            if name not in found and words & _words_for(name):
                found.add(name)
                unread.append(content)
    return tuple(name for name in others if name in found)


def modules_beside(path: Path, code: bytes | None = None) -> dict[str, bytes]:
    """The files beside a homework, or in folders beside it, that its imports speak of: name -> content.

    Args:
        path: The homework.
        code: Its content, where it is not a file; None: it is read.
    """
    code = path.read_bytes() if code is None else code
    beside = {
        file.relative_to(path.parent).as_posix(): file.read_bytes()
        for file in _python_files(path.parent, DEEPEST, _imported_words(code))
        if file != path
    }
    chosen = spoken_of(code, beside)[:MOST_MODULES]
    return {name: beside[name] for name in chosen}


def _python_files(folder: Path, depth: int, words: set[bytes]) -> Iterable[Path]:
    """The modules in a folder, and in those of its folders that an import speaks of."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.is_symlink() or entry.name in _SKIPPED:
            continue
        if entry.is_file() and entry.suffix == ".py":
            yield entry
        elif entry.is_dir() and depth and entry.name.encode() in words:
            # what lies in a package imports its neighbors by names that the homework does not speak of
            inside = words | {each.name.encode() for each in entry.iterdir()}
            yield from _python_files(entry, depth - 1, inside)


def _imported_words(code: bytes) -> set[bytes]:
    return {word for line in _IMPORTS.findall(code) for word in _WORD.findall(line)}


def _words_for(name: str) -> set[bytes]:
    """The word by which an import names a file: its stem, or a package's folder."""
    path = PurePosixPath(name)
    return {(path.parent.name if path.stem == "__init__" else path.stem).encode()}
