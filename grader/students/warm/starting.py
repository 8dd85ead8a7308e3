"""A warm process, started by who does not wait for it."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.students.warm.address import WarmAddress

# how it makes checks: each in a fork, or one in itself
FORKS, ONCE = "--forks", "--once"
IDLE_SECONDS = 600.0
# those of this process, which they outlive: nobody waits for one but who starts another
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
    """Start a process that will answer at an address, unless one is at it.

    Args:
        assignment: The folder of the assignment, as students have it.
        datasets: The folder of its data set files.
        environment: In which checks will be asked for.
        idle: Seconds without a check after which it ends.
        way: `FORKS` or `ONCE`; empty: as the system allows.

    Raises:
        OSError: It cannot be started.
    """
    if address.lock.is_held():
        return
    # macOS gives no promise for what PyTorch has loaded when a process forks, and Windows has no forks
    way = way or (FORKS if sys.platform == "linux" else ONCE)
    arguments = (way, address.name, idle, address.folder, assignment.resolve(), datasets.resolve())
    # not in the terminal's group: Ctrl-C there is not meant for it
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    _started[:] = [each for each in _started if each.poll() is None]
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
