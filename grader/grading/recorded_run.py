"""The record of gradings in a results folder: what was asked for, how far the running one is, how it ended.

Whoever looks into the folder, as the console does, can follow a grading that somebody else started, ask it to
stop, and start the same one again. A lock says whether one is running: it ends with its process, however that
ends. `run_recorder` writes the record.
"""

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from grader.domain.errors import UsageError
from grader.files import atomic
from grader.files.stored_records import validator

if sys.platform != "win32":
    import fcntl

FOLDER = ".grading"  # within the results
LOCK_VARIABLE = "GRADER_GRADING_LOCK"  # the descriptor of the lock that a process was started with
LOCK, REQUESTS, RUN, STOP = "lock", "requests.json", "run.json", "stop"
_TRIES, _MOMENT = 5, 0.02  # seconds


class RunPhase(StrEnum):
    """Where a grading is."""

    STARTING = "starting"
    GRADING = "grading"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self in (RunPhase.DONE, RunPhase.STOPPED, RunPhase.FAILED)


@dataclass(frozen=True)
class RecordedRequest:
    """What a grading was asked for, so that the same can be asked again; all paths are absolute.

    Attributes:
        data: A path, or `synthetic`; empty: nothing is trained.
        when: When it was last asked for.
    """

    path: str
    assignment: str
    course: str
    data: str
    jobs: int
    device: str
    extensions: str
    roster: str
    unofficial: bool
    when: datetime
    groups: str = ""

    def words(self, out: Path) -> list[str]:
        """The words of the command without its last one, the path."""
        words = ["grade", f"--assignment={self.assignment}", f"--out={out}", f"--course={self.course}"]
        words += [f"--data={self.data}"] if self.data else ["--no-train"]
        words += [f"--jobs={self.jobs}", f"--device={self.device}"]
        words += [f"--extensions={self.extensions}"] if self.extensions else []
        words += [f"--roster={self.roster}"] if self.roster else []
        words += [f"--groups={self.groups}"] if self.groups else []
        return [*words, *(["--unofficial"] if self.unofficial else [])]


@dataclass(frozen=True)
class UnderWay:
    """A submission that is being examined.

    Attributes:
        share: How much of the stage is done, 0 to 1.
    """

    student_id: str
    stage: str
    share: float
    text: str


@dataclass(frozen=True)
class RecordedRun:
    """How far a grading is, or how it ended.

    Attributes:
        id: Of this run.
        who: Who started it.
        done: How many are done, in words.
        share: Of the work, 0 to 1.
        times: The time so far and the time left, in words.
        said: Its plan while it runs, and how it ended afterwards.
    """

    id: str
    who: str
    started: datetime
    phase: RunPhase
    done: str = ""
    share: float = 0.0
    times: str = ""
    under_way: tuple[UnderWay, ...] = ()
    said: str = ""


# --- reading ---------------------------------------------------------------------------------------------


def recorded_requests(out: Path) -> tuple[RecordedRequest, ...]:
    """What was graded into the folder, the last one first; one for each path."""
    try:
        requests: tuple[RecordedRequest, ...] = validator(tuple[RecordedRequest, ...]).validate_json(
            (out / FOLDER / REQUESTS).read_bytes()
        )
    except (OSError, ValidationError):
        return ()
    return requests


def last_run(out: Path) -> RecordedRun | None:
    """The running grading, or the last one; None if none was recorded."""
    try:
        run: RecordedRun = validator(RecordedRun).validate_json((out / FOLDER / RUN).read_bytes())
    except (OSError, ValidationError):
        return None
    return run


def is_recording(out: Path) -> bool:
    """Whether a recorded grading is running."""
    if not (out / FOLDER / LOCK).exists():
        return False
    try:
        os.close(_locked(out, exclusive=False))
    except BlockingIOError:
        return True
    return False


def ask_to_stop(out: Path, run_id: str) -> None:
    """Ask a grading to stop, as Ctrl+C does: what is done is kept.

    Raises:
        UsageError: The folder cannot be written.
    """
    atomic.write(out / FOLDER / STOP, run_id.encode("utf-8"))


def taken_lock(out: Path) -> int:
    """The descriptor of the lock that the recorded grading holds; whoever closes it gives it back.

    Raises:
        BlockingIOError: Another process has it.
        UsageError: The file system has no such locks.
    """
    atomic.make_folder(out / FOLDER)
    for _ in range(_TRIES):  # another process that only asks holds it for a moment
        with contextlib.suppress(BlockingIOError):
            return _locked(out, exclusive=True)
        time.sleep(_MOMENT)
    return _locked(out, exclusive=True)


def _locked(out: Path, *, exclusive: bool) -> int:
    if sys.platform == "win32":
        raise UsageError("Gradings are recorded on Linux and macOS only. Use `grader grade` in a terminal.")
    descriptor = os.open(out / FOLDER / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        raise UsageError(
            f"{out} lies on a file system without locks, so that two gradings at once could not be told "
            "apart. Use `grader grade` in a terminal."
        ) from None
    return descriptor
