"""What a command costs: wall-clock time, and processor time of all its processes."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TAIL = 2000


class ToolError(Exception):
    """A tool failed, or did not give full marks; the message says which and what it said."""


@dataclass(frozen=True)
class Cost:
    """Seconds.

    Attributes:
        wall: From the start to the end.
        cpu: Of the command and of all processes that it waited for.
    """

    wall: float
    cpu: float

    def further(self, one: "Cost", count: int) -> "Cost":
        """Per further submission, when this is of `count` submissions and `one` of a single one.

        Raises:
            ToolError: It comes out as nothing, because something else kept the machine busy.
        """
        if self.wall <= one.wall or self.cpu <= one.cpu:
            raise ToolError(
                f"{count} submissions took no longer than one ({self.wall:.1f} s and {one.wall:.1f} s): "
                "something else keeps this machine busy. Run it again when the machine is idle."
            )
        return Cost((self.wall - one.wall) / (count - 1), (self.cpu - one.cpu) / (count - 1))


def cost(command: Sequence[str], *, folder: Path, variables: Mapping[str, str] | None = None) -> Cost:
    """Run a command in a folder.

    Raises:
        ToolError: It ended with an error.
    """
    log = folder / "said.txt"
    with log.open("wb") as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise ToolError(f"{' '.join(command)} ended with {process.returncode}:\n{text[-TAIL:]}")
    return Cost(wall, used.ru_utime + used.ru_stime)
