"""Small classes for tests of places where nodes come from, and the command that grades them there."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course.beginning import begin_assignment, begin_course
from grader.course.locate import located_course
from grader.course.reference_solution import solved_source
from tests.loopback_servers import living, wait_until

SECRET = "a secret that stays with the coordinator"
ASSIGNMENT = "parts"
# Ctrl-C interrupts it also where the tests run in the background, which ignores that
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from grader.cli import main; main()"
)


@dataclass(frozen=True)
class SmallClass:
    """A course, and what students handed in for one of its assignments.

    Attributes:
        students: Their ids.
        assignment: The assignment; by default the only one, which trains nothing.
        options: Of the command that grades it.
    """

    course: Path
    uploads: Path
    students: tuple[str, ...]
    assignment: str = ASSIGNMENT
    options: tuple[str, ...] = ()


def small_class(folder: Path, *, students: int, seconds: float) -> SmallClass:
    """A class whose submissions are all right.

    Args:
        seconds: How long one takes at least.
    """
    begin_course(folder / "course", "A course")
    begin_assignment(located_course(folder / "course", environment={}), ASSIGNMENT, "numpy")
    solution = folder / "course" / "reference" / ASSIGNMENT / "solution.py"
    source = solved_source(solution.read_text(encoding="utf-8"), solution.name)
    source = source.replace("import numpy as np\n", "import time\n\nimport numpy as np\n", 1)
    begin = "    def backward(self, upstream):\n"
    assert begin in source
    source = source.replace(begin, f"{begin}        time.sleep({seconds})\n")
    ids = tuple(str(400101200 + number) for number in range(students))
    for student_id in ids:
        (folder / "uploads" / student_id).mkdir(parents=True)
        upload = folder / "uploads" / student_id / f"{student_id}_{ASSIGNMENT}.py"
        upload.write_text(f"{source}# {student_id}\n", encoding="utf-8")
    return SmallClass(folder / "course", folder / "uploads", ids)


@dataclass
class Grading:
    """A running `grader grade`.

    Attributes:
        out: The folder of its results.
        log: What it prints.
    """

    process: "subprocess.Popen[bytes]"
    out: Path
    log: Path

    def said(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, *words: str, seconds: float = 600) -> None:
        """Wait until it has printed all of these."""
        wait_until(
            lambda: all(word in self.said() for word in words), f"it says {words}", seconds,
            [self.process], [self.log],
        )  # fmt: skip

    def wait(self, seconds: float = 600) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(seconds)

    def interrupt(self) -> None:
        """Ctrl-C on its terminal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def results(self) -> dict[str, dict[str, Any]]:
        """What results.json says, by student."""
        document = json.loads((self.out / "results.json").read_text(encoding="utf-8"))
        return {entry["student_id"]: entry for entry in document["submissions"]}


@contextlib.contextmanager
def grading(
    graded: SmallClass, where: str, out: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Grading]:
    """`grader grade ... --cluster WHERE`, with a secret in its environment; it is killed if it still runs."""
    command = [sys.executable, "-c", PROGRAM]
    command += ["grade", str(graded.uploads), "--assignment", graded.assignment, *graded.options]
    command += ["--course", str(graded.course), "--out", str(out), "--cluster", where]
    log = out.with_suffix(".log")
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            env={**os.environ, "GRADER_SECRET": SECRET, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Grading(process, out, log)
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def all_points(results: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, float]]:
    """(status, total) by student."""
    return {student_id: (entry["status"], entry["total"]) for student_id, entry in results.items()}


def processes_that_know(text: str, *, files: tuple[str, ...] = ("cmdline", "environ")) -> dict[int, str]:
    """The processes in whose arguments or environment a text stands."""
    return living(lambda process: any(text.encode() in (process / file).read_bytes() for file in files))


def processes_of(*uids: int) -> dict[int, str]:
    """The processes of these users."""
    return living(lambda process: process.stat().st_uid in uids)


def folders_of(*uids: int) -> list[Path]:
    """What lies in the folder for temporary files and is these users'."""
    return [path for path in Path("/tmp").iterdir() if path.lstat().st_uid in uids]
