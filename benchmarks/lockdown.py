"""What the layers cost: a locked-down worker beside one that the same kind of host forks without."""

import statistics
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.section import Section, spread, verdict
from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.protocol.frames import FrameLimit
from grader.protocol.link import Link
from grader.protocol.replies import Loaded
from grader.protocol.requests import Load
from grader.sandbox.host_client import Host
from grader.sandbox.process_limits import ProcessLimits

ROOT = Path(__file__).parents[1]
ROUNDS = 60
MOST_MS = 10


def measured(rounds: int = ROUNDS) -> Section:
    """The time until a submission is loaded, and for a whole turn from one submission to the next.

    The turns follow each other without a pause, so that what a host prepares in advance is paid for as well.
    """
    assignment = read_assignment(ROOT / "reference" / "vit_defects")
    source = (assignment.folder / "solution.py").read_bytes()
    request = Load(program("homework.py", source, replace(assignment.program_rules, forbidden=())))
    with (
        Host.start("grader.worker", wrapped=True) as locked,
        Host.start("unconfined_worker", env={"PYTHONPATH": str(ROOT / "tests")}) as unlocked,
    ):
        for host in (locked, unlocked):
            _turn(host, request)
        turns = [(_turn(locked, request), _turn(unlocked, request)) for _ in range(rounds)]
    rows, costs = [], []
    for number, what in enumerate(("until the submission is loaded", "a whole turn, back to back")):
        with_layers, without = ([pair[side][number] for pair in turns] for side in (0, 1))
        added = [a - b for a, b in zip(with_layers, without, strict=True)]
        rows.append((what, spread(with_layers), spread(without), spread(added)))
        costs.append(added)
    whole = costs[1]
    claim = (
        f"A submission's lock-down costs, in a whole turn, the median of {rounds} differences between "
        f"{min(whole):.0f} and {max(whole):.0f} ms"
    )
    return Section(
        "Lock-down",
        f"A worker is asked for, loads the reference solution, and is ended; {rounds} turns with all layers "
        "and without any, one after the other, in milliseconds.",
        ("", "all layers", "no layers", "added"),
        tuple(rows),
        (verdict(claim, statistics.median(whole), MOST_MS, at_most=True, unit="ms"),),
    )


def _turn(host: Host, request: Load) -> tuple[float, float]:
    """Milliseconds until the submission is loaded, and until its worker is gone."""
    started = time.perf_counter()
    with host.spawn(ProcessLimits()) as child:
        Link(child).ask(request, Loaded, seconds=60, limit=FrameLimit())
        loaded = time.perf_counter()
    return (loaded - started) * 1000, (time.perf_counter() - started) * 1000
