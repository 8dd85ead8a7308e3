"""Makes names of files and people, and other short texts, safe to use.

Names that somebody else chose become ids, names of files and text that may be shown. The text of a
spreadsheet cell never becomes a formula. The module holds the names of the pages about a student. It also
finds the files that a homework's imports mention, by words alone: it may find too many, but never too few.
`grader.analysis` decides which of them are really part of the homework.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from grader.domain.submission import ANSWERS_FILE

LONGEST_PLAIN = 200  # bytes; a longer name stays as it is


def plain(name: str) -> str:
    """The name in ordinary letters and digits: no full-width letters, other digits or invisible marks.

    Args:
        name: A file's name, without folders.
    """
    letters: Iterable[str] = name
    if not name.isascii():
        letters = (
            str(unicodedata.decimal(letter)) if unicodedata.category(letter) == "Nd" else letter
            for letter in unicodedata.normalize("NFKC", name)
            if unicodedata.category(letter) != "Cf"
        )
    name_made = " ".join("".join(letters).split())
    # a full-width slash or dot would become one with a meaning for the file system
    usable = name_made not in ("", ".", "..") and not re.search(r"[/\\\0]", name_made)
    return name_made if usable and len(name_made.encode("utf-8", "replace")) <= LONGEST_PLAIN else name


def sanitized(label: str) -> str:
    """`label` as an id: letters, digits, `-` and `_`, never empty, at most 64 of them."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    usable = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[:64]
    if usable:
        return usable
    return "student-" + hashlib.sha256(label.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def displayable(name: str) -> str:
    """A name of a file or a person, safe to show: not too long, with `?` for unprintable characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:120]


# --- page names ------------------------------------------------------------------------------------------


REPORT = "report.html"
SUBMISSION_PAGE = "submission.html"
ANSWERS_PAGE = "answers.html"
ATTENTION_PAGE = "attention.html"
# all files that lie beside one another and are written together
STUDENT_FILES = (
    SUBMISSION_PAGE,
    ANSWERS_PAGE,
    REPORT,
    ANSWERS_FILE,
)


def beside(report: str, page: str = SUBMISSION_PAGE) -> str:
    """The address of a page that lies beside a report; empty without a report."""
    folder, slash, _ = report.rpartition("/")
    return f"{folder}{slash}{page}" if report else ""


# --- own modules -----------------------------------------------------------------------------------------


MOST_MODULES = 60
DEEPEST = 4  # folders below the homework's own
_IMPORTS = re.compile(rb"^.*\bimport\b\s*\([^)]*\)|^.*\bimport\b.*$|^.*\.py\b.*$", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_SKIPPED = {"__pycache__", "site-packages", "node_modules", "handin", "checks"}


def spoken_of(code: bytes, others: Mapping[str, bytes]) -> tuple[str, ...]:
    """The names of the files that the code, or one of these files, may import.

    Args:
        code: A script, or the stored form of a notebook.
        others: Name, with the folders before it (`parts/attention.py`) -> content.

    Returns:
        In the order of `others`.
    """
    imported: set[str] = set()
    to_read = [code]
    while to_read:
        words = _imported_words(to_read.pop())
        for name, content in others.items():
            if name not in imported and words & _words_for(name):
                imported.add(name)
                to_read.append(content)
    return tuple(name for name in others if name in imported)


def modules_beside(path: Path, code: bytes | None = None) -> dict[str, bytes]:
    """The files beside a homework, or in folders beside it, that its imports mention: name -> content.

    Args:
        path: The homework.
        code: Its content, if it is not a file; None: it is read.
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
    """The modules in a folder, and in those of its folders that an import mentions."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.is_symlink() or entry.name in _SKIPPED:
            continue
        if entry.is_file() and entry.suffix == ".py":
            yield entry
        elif entry.is_dir() and depth and entry.name.encode() in words:
            # modules of a package import their neighbors by names that the homework does not mention
            inside = words | {neighbor.name.encode() for neighbor in entry.iterdir()}
            yield from _python_files(entry, depth - 1, inside)


def _imported_words(code: bytes) -> set[bytes]:
    return {word for line in _IMPORTS.findall(code) for word in _WORD.findall(line)}


def _words_for(name: str) -> set[bytes]:
    """The word by which an import names a file: its stem, or a package's folder."""
    path = PurePosixPath(name)
    return {(path.parent.name if path.stem == "__init__" else path.stem).encode()}


# --- spreadsheet cell ------------------------------------------------------------------------------------


# a spreadsheet takes a cell that begins like this for a formula (OWASP, "CSV Injection")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
GUARD = "'"


def guarded(text: str) -> str:
    """The text, protected from being read as a formula; `unguarded` restores it."""
    return f"{GUARD}{text}" if text.startswith((*FORMULA, GUARD)) else text


def unguarded(text: str) -> str:
    """The text that `guarded` protected; any other text unchanged."""
    rest = text.removeprefix(GUARD)
    return rest if rest.startswith((*FORMULA, GUARD)) else text
