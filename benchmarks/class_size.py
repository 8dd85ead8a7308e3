"""What a submission costs in a class of 1,000 and in one of 100: memory and processor time must not grow."""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from benchmarks.generated_class import JOBS, ROOT, grading, require_success, write_submissions
from benchmarks.section import Section, verdict
from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import Kind, homework_versions

SMALL, LARGE = 100, 1000
DIFFERENT = 50  # solutions that the class consists of, again and again, so that both sizes have the same mix
MOST_PERCENT = 10
EVERY_SECONDS = 0.25  # between two readings of the memory
MB = 10**6


@dataclass(frozen=True)
class Cost:
    """What a run took.

    Attributes:
        cpu_seconds: Of the grader and all of its processes, per submission.
        wall_seconds: Per submission.
        own_mb: The most that the grader's own process held (VmHWM).
        all_mb: The most that it and all of its processes held at once (PSS: what is shared counts once).
    """

    cpu_seconds: float
    wall_seconds: float
    own_mb: float
    all_mb: float


def measured(small: int = SMALL, large: int = LARGE) -> Section:
    """The cost per submission at both sizes: checks only, all layers of isolation, two at once."""
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as folder:
        costs = [_cost(count, Path(folder) / str(count)) for count in (small, large)]
    rows = []
    grown = {}
    for name, unit, digits in (
        ("cpu_seconds", "s", 2),
        ("wall_seconds", "s", 2),
        ("own_mb", "MB", 0),
        ("all_mb", "MB", 0),
    ):
        before, after = (getattr(cost, name) for cost in costs)
        grown[name] = 100 * (after / before - 1)
        told = (f"{value:.{digits}f} {unit}" for value in (before, after))
        rows.append((_SAYS[name], *told, f"{grown[name]:+.1f} %"))
    return Section(
        "Class size",
        f"`grader grade CLASS --no-train --jobs {JOBS}` on {small} and on {large} generated submissions "
        f"({DIFFERENT} different solutions, each with weights and a report), once each.",
        ("", f"{small} submissions", f"{large} submissions", "change"),
        tuple(rows),
        tuple(
            verdict(f"Growth of {_SAYS[name]}", grown[name], MOST_PERCENT, at_most=True, unit="%")
            for name in ("cpu_seconds", "all_mb")
        ),
    )


_SAYS = {
    "cpu_seconds": "processor time per submission",
    "wall_seconds": "time per submission",
    "own_mb": "most memory, the grader's own process",
    "all_mb": "most memory, all processes together",
}


def _cost(count: int, folder: Path) -> Cost:
    _generate(count, folder / "class")
    log = folder / "log"
    before, started = os.times(), time.perf_counter()
    process = grading(folder / "class", folder / "results", log, "--no-train")
    memory = _Memory(process.pid)
    memory.start()
    code = process.wait()
    memory.join()
    wall, after = time.perf_counter() - started, os.times()
    require_success(code, log)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"  {count} submissions: {wall:.0f} s", flush=True)
    return Cost(cpu / count, wall / count, memory.own / MB, memory.everything / MB)


def _generate(count: int, destination: Path) -> None:
    """A class of solutions with weights and a report; no two have the same code."""
    assignment = read_assignment(ROOT / "reference" / "vit_defects")
    found = [one for one in homework_versions(assignment) if one.kind in (Kind.FORM, Kind.MISTAKE)]
    chosen = found[:: max(1, len(found) // DIFFERENT)][:DIFFERENT]
    write_submissions(
        destination,
        (f"{one.source}\n# {number}\n" for number, one in enumerate(islice(cycle(chosen), count))),
    )


class _Memory(threading.Thread):
    """Watches a process and all that descend from it until it ends.

    Attributes:
        own: The most bytes of the process itself.
        everything: The most bytes of all together.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.own = self.everything = 0

    def run(self) -> None:
        """Read, until there is nothing to read."""
        while own := _kilobytes(self._pid, "status", "VmHWM"):
            self.own = max(self.own, own * 1024)
            together = sum(_kilobytes(pid, "smaps_rollup", "Pss") for pid in _family(self._pid))
            self.everything = max(self.everything, together * 1024)
            time.sleep(EVERY_SECONDS)


def _family(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has ended
        return
    for child in children:
        yield from _family(int(child))


def _kilobytes(pid: int, file: str, field: str) -> int:
    try:
        rows = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return next((int(row.split()[1]) for row in rows if row.startswith(f"{field}:")), 0)
