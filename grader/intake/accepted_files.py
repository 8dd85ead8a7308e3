"""The files of a submission that count: what is said of them, and what those hold that checks read."""

import hashlib
import os
from pathlib import Path

from grader.domain.assignment import MEGABYTE, Assignment
from grader.domain.errors import SubmissionError
from grader.domain.submission import AcceptedFile, Intake
from grader.lms.downloads import read_name


def accepted_files(intake: Intake) -> tuple[AcceptedFile, ...]:
    """The files that count, with size and digest."""
    return tuple(_described(role, path) for role, path in intake.accepted)


def contents_of_others(intake: Intake, assignment: Assignment) -> dict[str, bytes]:
    """What the files in roles of the assignment's own hold, by the role.

    Raises:
        SubmissionError: A file was replaced since it was accepted.
    """
    most = assignment.limits.file_mb * MEGABYTE
    return {role: bounded_content(path, most) for role, path in intake.others.items()}


def bounded_content(path: Path, most: int) -> bytes:
    """What a file holds, which must be no link and no larger than was accepted.

    Args:
        path: The file.
        most: Bytes.

    Raises:
        SubmissionError: It is a link, is too large or cannot be read.
    """
    try:
        # opened before it is looked at: what the name stands for may change in between
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise SubmissionError(f"{path.name}: cannot be read ({error.strerror}). Hand it in again.") from error
    if len(content) > most:
        raise SubmissionError(f"{path.name}: is over {most / MEGABYTE:g} MB large. Hand in less.")
    return content


def _described(role: str, path: Path) -> AcceptedFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return AcceptedFile(role, read_name(path.name).name or path.name, path.stat().st_size, digest)
