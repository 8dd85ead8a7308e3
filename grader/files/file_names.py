"""Names of files and people, and other short texts, written so that they are safe to use.

Names that somebody else chose become ids, names of files and text that may be shown. The text of a
spreadsheet cell never becomes a formula. It holds what the pages about a student are called, and finds
the files that a homework's imports speak of, by words alone: it may name a file too many, and never one
too few. Which of them are really part of the homework is decided in `grader.analysis`.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from grader.domain.submission import ANSWERS_FILE

LONGEST_PLAIN = 200  # bytes; what is longer stays as it is


def plain(name: str) -> str:
    """The name in ordinary letters and digits: neither full-width, nor other digits, nor invisible marks.

    Args:
        name: A file's name, without folders.
    """
    letters = (
        str(unicodedata.decimal(letter)) if unicodedata.category(letter) == "Nd" else letter
        for letter in unicodedata.normalize("NFKC", name)
        if unicodedata.category(letter) != "Cf"
    )
    made = " ".join("".join(letters).split())
    # a full-width slash or dot becomes one that means something to the file system
    usable = made not in ("", ".", "..") and not re.search(r"[/\\\0]", made)
    return made if usable and len(made.encode("utf-8", "replace")) <= LONGEST_PLAIN else name


def sanitized(label: str) -> str:
    """`label` as an id: letters, digits, `-` and `_`, never empty, at most 64 of them."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    kept = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[:64]
    if kept:
        return kept
    return "student-" + hashlib.sha256(label.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def displayable(name: str) -> str:
    """A name of a file or a person as it may be shown: what cannot be printed as `?`, and not too long."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:120]


# --- page names ------------------------------------------------------------------------------------------


REPORT = "report.html"
SUBMISSION_PAGE = "submission.html"
ANSWERS_PAGE = "answers.html"
ATTENTION_PAGE = "attention.html"
# all that lie beside one another, and are made anew together
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


# --- spreadsheet cell ------------------------------------------------------------------------------------


# A spreadsheet takes a cell that begins so for a formula (OWASP, "CSV Injection").
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
GUARD = "'"


def guarded(text: str) -> str:
    """The text, kept from being read as a formula; `unguarded` gives it back."""
    return f"{GUARD}{text}" if text.startswith((*FORMULA, GUARD)) else text


def unguarded(text: str) -> str:
    """What `guarded` was made from; any other text as it stands."""
    rest = text.removeprefix(GUARD)
    return rest if rest.startswith((*FORMULA, GUARD)) else text
