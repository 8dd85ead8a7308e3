"""Reads the files that people write for a course: their bytes or their text, or a sentence why it cannot.

It accepts the mark that some editors put before a text in UTF-8, which is no part of it. What the files mean
is not known here.
"""

from pathlib import Path

from grader.domain.errors import CourseError


def file_content(path: Path, shown: str) -> bytes:
    """The bytes of a file; `shown` is its path in messages.

    Raises:
        CourseError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(error, shown) from None


def file_text(path: Path, shown: str) -> str:
    """The text of a file, with `\\n` between lines; `shown` is its path in messages.

    Raises:
        CourseError: It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CourseError(f"{shown} is not UTF-8 text. Save it again in UTF-8.") from None
    except OSError as error:
        raise unreadable(error, shown) from None


def unreadable(error: OSError, shown: str) -> CourseError:
    """The error about a file that the system does not open."""
    advice = (
        "Change its permissions" if isinstance(error, PermissionError) else "Put a file there, or remove it"
    )
    return CourseError(f"{shown} cannot be read ({error.strerror}). {advice}.")
