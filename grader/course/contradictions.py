"""The sentences about an `assignment.toml` that contradicts itself."""

import re
from collections.abc import Iterable

from grader.domain.errors import CourseError

FILE = "assignment.toml"


def fault(sentence: str) -> CourseError:
    """The error that names the file first."""
    return CourseError(f"{FILE}: {sentence}")


def require_file_name(text: str, what: str) -> None:
    """Refuse an id that could not become part of a file name.

    Raises:
        CourseError: It has other characters than letters, digits, `_` and `-`.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", text):
        raise fault(f"{what} '{text}' becomes part of file names. Use only letters, digits, '_' and '-'.")


def require_different(names: Iterable[str], what: str, advice: str) -> None:
    """Refuse a name that is there twice.

    Raises:
        CourseError: `what` is there twice; `advice` says what to do.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise fault(f"{what} '{name}' is there twice. {advice}")
        seen.add(name)
