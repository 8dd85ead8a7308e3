"""Reads the names of files and archive entries: whose a file is, how well it fits, and what is refused.

It decides how well a name fits the asked one, and which mark of a copy it carries. It also decides which
files are clutter or are never accepted, and which entries of an archive may become files. It opens no file.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath

from grader.domain.assignment import Assignment
from grader.files.file_names import plain, sanitized

DEEPEST = 12  # folders within folders
LONGEST = 200  # bytes of one part of a path


def parts_of(name: str) -> tuple[str, ...]:
    """The folders and the file that an entry's name stands for, with either kind of slash."""
    return PurePosixPath(name.replace("\\", "/")).parts


def name_fault(name: str) -> str | None:
    """Why no file may have an entry's name, as the end of a sentence, or None."""
    parts = parts_of(name)
    if not parts or parts[0].startswith("/") or ".." in parts or parts[0].endswith(":"):
        return "points outside the archive and was not unpacked. Pack the files from within their folder."
    if any(len(part.encode("utf-8", "replace")) > LONGEST for part in parts) or len(parts) > DEEPEST:
        return "has a name that is too long or lies too deep. Rename it, or pack it nearer to the top."
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        return "has control characters in its name. Rename it."
    return None


class Taken:
    """The names that are in use, compared without regard to case."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def collision(self, name: str) -> str | None:
        """Why a file of this name cannot be written beside the earlier ones, or None."""
        *folders, file = _prefixes(parts_of(name))
        if file in self._keys or file + "/" in self._keys or any(f[:-1] in self._keys for f in folders):
            return "is in the archive twice, or has the name of a folder. Only the first was unpacked."
        return None

    def add(self, name: str) -> None:
        """Note that a file of this name and the folders that it lies in exist."""
        self._keys.update(_prefixes(parts_of(name)))


def _prefixes(parts: tuple[str, ...]) -> Iterator[str]:
    """`a/`, `a/b/`, `a/b/c` for a path of three parts, normalized for comparison."""
    folded = [unicodedata.normalize("NFC", part).casefold() for part in parts]
    for index in range(1, len(folded)):
        yield "/".join(folded[:index]) + "/"
    yield "/".join(folded)


# --- naming ----------------------------------------------------------------------------------------------


CLUTTER_FILES = {".ds_store", "thumbs.db", "desktop.ini", ".gitignore", ".gitkeep", ".localized"}
CLUTTER_FOLDERS = {"__macosx", ".ipynb_checkpoints", "__pycache__", ".git", ".idea", ".vscode", ".venv"}

# files that tools read as their configuration
CONFIGURATION = {
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "setup.cfg", "tox.ini"),
    *("pytest.ini", "pyproject.toml", "assignment.toml", "course.toml"),
}
LIBRARIES = {
    *("torch", "torchvision", "numpy", "einops", "sklearn", "matplotlib", "seaborn", "pandas", "pil"),
    *("tqdm", "pytest", "grader", "builtins", "typing", "random", "math", "os", "sys"),
}

# what a browser, a system, Canvas or a student appends to the name of another copy or a later attempt
COPY = re.compile(
    r"(?:\s*\(\d{1,2}\)|-\d{1,2}|[\s_-]*copy"
    r"|[\s_-]+(?:v|ver|version|attempt|try|resubmission)[\s_-]?\d{1,2}|[\s_-]+resubmi(?:ssion|tted))+$",
    re.IGNORECASE,
)
ANY_ID = "ID"  # in a sentence to a team: the name of a file may carry the id of any member
LONG_NUMBER = re.compile(r"\d{5,}")


class Closeness(IntEnum):
    """How well a name fits the one that was asked for; smaller is better."""

    EXACT = 0
    NEARLY = 1
    ID_ONLY = 2
    NONE = 3


@dataclass(frozen=True)
class NameMatch:
    """Whose file it is by its name, if that says so, and how well the name fits."""

    student_id: str | None
    closeness: Closeness


def copy_mark(stem: str) -> tuple[str, int]:
    """A name without its mark of a copy or an attempt, and the number of that mark, or 0.

    Args:
        stem: A name without its suffix.
    """
    match = COPY.search(stem)
    if match is None or match.start() == 0:
        return stem, 0
    numbers = re.findall(r"\d+", match[0])
    return stem[: match.start()], int(numbers[-1]) if numbers else 1


@lru_cache(maxsize=1 << 15)  # each name of a class is looked at for several reasons, at different times
def name_match(name: str, file_stem: str) -> NameMatch:
    """Whose file it is by its name. An id that has to be sanitized is not an exact match.

    Args:
        name: The student's name for the file, with its suffix.
        file_stem: The required names of files, e.g. `{student_id}_Lab8_Homework`.
    """
    before, _, after = file_stem.partition("{student_id}")
    path = PurePath(name)
    stem = path.stem if path.suffix else name
    any_id = r"(?P<id>[A-Za-z0-9_-]+)"
    exact_match = re.fullmatch(re.escape(before) + any_id + re.escape(after), stem)
    if exact_match:
        is_exact = path.suffix == path.suffix.lower() and sanitized(exact_match["id"]) == exact_match["id"]
        return NameMatch(exact_match["id"], Closeness.EXACT if is_exact else Closeness.NEARLY)
    stem = COPY.sub("", stem)
    loose = _loose_pattern(before) + r"(?P<id>[A-Za-z0-9-]*[A-Za-z0-9])" + _loose_pattern(after)
    near_match = re.fullmatch(loose, stem, re.IGNORECASE)
    if near_match:
        return NameMatch(near_match["id"], Closeness.NEARLY)
    if number := LONG_NUMBER.search(stem):
        return NameMatch(number[0], Closeness.ID_ONLY)
    return NameMatch(None, Closeness.NONE)


def own_match(name: str, assignment: Assignment) -> NameMatch:
    """Whose file it is by its name, compared with the required names of files of its kind.

    Args:
        name: The student's name for the file, with its suffix.
        assignment: Says how files are named.
    """
    asked = assignment.asked_file(name)
    usual = name_match(name, assignment.file_stem)
    if asked is None or asked.stem == assignment.file_stem:
        return usual
    match = name_match(name, asked.stem)
    if match.student_id is not None and match.closeness <= Closeness.NEARLY:
        # `400101204_Homework_metrics`, where `{student_id}_metrics` is asked for
        inner = name_match(match.student_id, assignment.file_stem)
        return NameMatch(inner.student_id, Closeness.NEARLY) if inner.closeness <= Closeness.NEARLY else match
    return NameMatch(usual.student_id, max(usual.closeness, Closeness.NEARLY))


def _loose_pattern(text: str) -> str:
    """A pattern for `text` with any separators between its words."""
    words = [re.escape(word) for word in re.split(r"[\s_.-]+", text)]
    return r"[\s_.-]*".join(words)


def is_alike(label: str, student_id: str) -> bool:
    """Whether a label of a student's files is a number as long as the student's id."""
    name = copy_mark(plain(label))[0].strip()
    return LONG_NUMBER.fullmatch(name) is not None and student_id.isdecimal() and len(student_id) == len(name)


def is_clutter(path: PurePath) -> bool:
    """Whether it is a file that computers make for themselves (`.DS_Store`, `__MACOSX`) and is ignored."""
    name = path.name.lower()
    if name in CLUTTER_FILES or name.startswith(("._", "~$")):
        return True
    return any(part.lower() in CLUTTER_FOLDERS for part in path.parts)


def clutter_reason(name: str) -> str:
    """Why such a file is set aside, in a sentence."""
    return f"{name}: was made by the computer for its own use. Nothing is lost."


def refused_name(name: str) -> str | None:
    """Why a file of this name is never accepted, or None."""
    lower = name.lower()
    if lower.startswith("."):
        return f"{name}: is a hidden file. Give it a name without the dot."
    if lower in CONFIGURATION:
        return f"{name}: is a configuration file that tools would read. Give your own file another name."
    if Path(lower).suffix == ".py" and Path(lower).stem in LIBRARIES:
        return f"{name}: has the name of a library and would take its place. Give it another name."
    return None
