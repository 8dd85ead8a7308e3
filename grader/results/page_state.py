"""Which state of the book the files of a results folder tell of, and who is writing them.

The state is noted when all of them are written: after a kill at any moment it is an earlier one, or none, and
whoever works in the folder next sees that something is to be made up for, without reading the files.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.files import atomic
from grader.gradebook import Gradebook, State

if sys.platform != "win32":
    import fcntl

FILE = ".pages"
STUDENTS = "students"
_TRIES, _MOMENT = 5, 0.02  # seconds


@dataclass(frozen=True)
class Noted:
    """What the files were written from.

    Attributes:
        book: Which book: see `Gradebook.identity`.
        assignment: Of which assignment.
        state: The book's state then; None while they are being written.
    """

    book: str
    assignment: str
    state: State | None


def noted(out: Path) -> Noted | None:
    """What the files of a folder were written from; None where nothing says so."""
    try:
        match json.loads((out / FILE).read_text(encoding="utf-8")):
            case {"book": str(book), "assignment": str(assignment), "state": dict() | None as state}:
                return Noted(book, assignment, State(**state) if state else None)
    except (OSError, ValueError, TypeError):
        pass
    return None


def note(out: Path, book: Gradebook, assignment_id: str, state: State | None) -> None:
    """Note from which state all files are written.

    Args:
        state: The book's; None: they are being written.

    Raises:
        UsageError: The disk does not take it.
    """
    told = asdict(state) if state is not None else None
    content = {"book": book.identity(), "assignment": assignment_id, "state": told}
    atomic.write(out / FILE, json.dumps(content).encode("utf-8"))


def are_stale(out: Path, book: Gradebook, assignment_id: str) -> bool:
    """Whether files of the folder are known to tell of another state of the book than it has now.

    A folder that an older version wrote says nothing of that; from now on it does. What was written from
    another book, or about another assignment, is left alone.
    """
    if not (out / "results.json").exists():
        return (out / STUDENTS).exists()  # the first run did not come to its end
    before = noted(out)
    if before is None:
        if os.access(out, os.W_OK):
            with contextlib.suppress(UsageError):  # it is for later commands
                note(out, book, assignment_id, book.state())
        return False
    if (before.book, before.assignment) != (book.identity(), assignment_id):
        return False
    return before.state != book.state()


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """The right to write the files of a folder: one process has it at a time.

    Whoever takes the book's state after getting it writes nothing older than what is there.

    Raises:
        UsageError: There is no such folder, and it cannot be made.
    """
    atomic.make_folder(out)
    with _locked(out, exclusive=True):
        yield


@contextlib.contextmanager
def grading(out: Path) -> Iterator[None]:
    """Tells others that submissions are graded, and that their files are written at the end.

    Raises:
        UsageError: The folder cannot be made.
    """
    atomic.make_folder(out / STUDENTS)
    with _locked(out / STUDENTS, exclusive=False):
        yield


def is_graded_now(out: Path) -> bool:
    """Whether some process is grading into the folder."""
    if not (out / STUDENTS).exists():
        return False
    for _ in range(_TRIES):  # another that only asks has it for a moment
        try:
            with _locked(out / STUDENTS, exclusive=True, wait=False):
                return False
        except BlockingIOError:
            time.sleep(_MOMENT)
    return True


@contextlib.contextmanager
def _locked(folder: Path, *, exclusive: bool, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a folder, which ends with the process; on systems without such locks, none.

    Raises:
        BlockingIOError: Somebody else has it, and it is not waited for.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        how = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks: all is written whole anyway
            pass
        yield
    finally:
        os.close(descriptor)
