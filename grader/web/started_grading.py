"""Starts a grading as a process of its own, which goes on when the console ends.

The console itself never reads a submission and never runs students' code: this starts the command
`grader grade` with what was asked for before. It holds the lock of the recorded grading, which the process
inherits, so that there are never two.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from grader.domain.errors import UsageError
from grader.grading.recorded_run import FOLDER, LOCK_VARIABLE, RecordedRequest, taken_lock
from grader.results.class_pages import is_graded_now

LOG = "log"  # what the process says, beside the record
_MOST_LOGGED = 20_000  # bytes that are shown


def start_grading(
    out: Path,
    request: RecordedRequest,
    who: str,
    *,
    gradebook: str | None = None,
    only: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Start what was asked for before.

    Args:
        out: The folder of the results.
        who: For the record.
        gradebook: The gradebook's URL, if it is no file in the folder.
        only: Only these students' submissions; all when empty.
        force: Also examine what has not changed.

    Raises:
        UsageError: A grading is running, what was graded is gone, or it cannot be started.
    """
    if not Path(request.path).exists():
        raise UsageError(f"{request.path} is no longer there. Use `grader grade` with the path where it is.")
    if is_graded_now(out):
        raise UsageError("Submissions are being graded already. Wait until that is done, or stop it.")
    try:
        lock = taken_lock(out)
    except BlockingIOError:
        raise UsageError("A grading is running already. Wait until it is done, or stop it.") from None
    words = [*request.words(out.resolve()), f"--by={who}", *(f"--only={student}" for student in only)]
    words += ["--force"] if force else []
    environment = {**os.environ, LOCK_VARIABLE: str(lock)}
    if gradebook is not None:  # not among the words, which other users of the machine can read
        environment["GRADER_GRADEBOOK"] = gradebook
    try:
        with (out / FOLDER / LOG).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "grader", *words, "--", request.path],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl+C in the console's terminal is not meant for it
            )
    except OSError as error:
        raise UsageError(f"The grading could not be started ({error.strerror}).") from None
    finally:
        os.close(lock)  # the process has its own
    threading.Thread(target=process.wait, name="grading", daemon=True).start()


def log_of(out: Path) -> str:
    """The end of what the last started process said; empty if none was started."""
    try:
        with (out / FOLDER / LOG).open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _MOST_LOGGED, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
