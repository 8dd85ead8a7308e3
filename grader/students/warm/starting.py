"""Starts a warm process without waiting for it."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.students.warm.address import WarmAddress

# how it makes checks: each in a fork, or a single one in its own process
FORKS, ONCE = "--forks", "--once"
IDLE_SECONDS = 600.0
# the processes started by this one, which they outlive; an ended one is reaped when another is started
_started: "list[subprocess.Popen[bytes]]" = []


def start(
    address: WarmAddress,
    assignment: Path,
    datasets: Path,
    environment: Mapping[str, str],
    *,
    idle: float = IDLE_SECONDS,
    way: str = "",
) -> None:
    """Start a process that will answer at an address, unless there is one already.

    Args:
        assignment: The folder of the assignment, as students have it.
        datasets: The folder of its data set files.
        environment: The environment in which checks will be asked for.
        idle: Seconds without a check after which it ends.
        way: `FORKS` or `ONCE`; empty: as the system allows.

    Raises:
        OSError: It cannot be started.
    """
    if address.lock.is_held():
        return
    # macOS does not guarantee that what PyTorch has loaded survives a fork, and Windows has no forks
    way = way or (FORKS if sys.platform == "linux" else ONCE)
    arguments = (way, address.name, idle, address.folder, assignment.resolve(), datasets.resolve())
    # not in the terminal's process group: Ctrl-C there is not meant for it
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    _started[:] = [process for process in _started if process.poll() is None]
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "grader.students.warm", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=address.folder,
        env=dict(environment),
        **options,
    )
    _started.append(started)
