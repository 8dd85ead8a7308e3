"""nbgrader, Otter and this grader in turn, and the section that says what each costs."""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.cost import Cost
from benchmarks.peers.environment import REQUIREMENTS, tools_environment
from benchmarks.peers.notebooks import homework
from benchmarks.peers.tools import ROOT, Grader, Nbgrader, Otter
from benchmarks.section import Section, spread, verdict
from grader.course.assignment_file import read_assignment

NOTEBOOKS = 24
TURNS = 3
JOBS = 2
OURS = ("equal_work", "vit_defects")
LABELS = {"equal_work": "equal work", "vit_defects": "all our checks"}


@dataclass(frozen=True)
class Turn:
    """What everything cost in one turn.

    Attributes:
        single: nbgrader's cost of one submission alone.
        nbgrader, otter: The cost of a further submission.
        ours: By (assignment, jobs), the cost of a further submission.
        started: By assignment, our cost of one submission alone.
    """

    single: Cost
    nbgrader: Cost
    otter: Cost
    ours: dict[tuple[str, int], Cost]
    started: dict[str, Cost]


def measured(notebooks: int = NOTEBOOKS, turns: int = TURNS) -> Section:
    """Grade the same notebooks with all three, in turn.

    Args:
        notebooks: How many; Otter, which takes a fresh start for each, gets another share of them each turn.
        turns: How often.

    Raises:
        NotInstalledError: The other tools cannot be had here.
        ToolError: A tool failed, or gave less than full marks.
    """
    environment = tools_environment()
    chosen = homework(read_assignment(ROOT / "reference" / "vit_defects"), ROOT, notebooks)
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        folder = Path(scratch)
        nbgrader = Nbgrader(environment, _made(folder / "nbgrader"), chosen)
        otter = Otter(environment, _made(folder / "otter"), chosen)
        ours = {name: Grader(_made(folder / name), chosen, name) for name in OURS}
        found = []
        for turn in range(turns):
            print(f"  turn {turn + 1} of {turns} ...", flush=True)
            here = _made(folder / f"turn{turn}")
            found.append(_turn(here, nbgrader, otter, ours, notebooks, range(turn, notebooks, turns)))
    return section(found, notebooks)


def _turn(
    folder: Path,
    nbgrader: Nbgrader,
    otter: Otter,
    ours: dict[str, Grader],
    notebooks: int,
    share: Sequence[int],
) -> Turn:
    single = nbgrader.graded(1, folder / "nbgrader1")
    whole = nbgrader.graded(notebooks, folder / "nbgrader")
    costs: dict[tuple[str, int], Cost] = {}
    started: dict[str, Cost] = {}
    for name, tool in ours.items():
        started[name] = one = tool.graded(1, folder / f"{name}1", jobs=1)
        for jobs in (1, JOBS):
            many = tool.graded(notebooks, folder / f"{name}-jobs{jobs}", jobs=jobs)
            costs[name, jobs] = many.further(one, notebooks)
    each = [otter.graded(number, folder / f"otter{number}") for number in share]
    otters = Cost(statistics.mean(c.wall for c in each), statistics.mean(c.cpu for c in each))
    return Turn(single, whole.further(single, notebooks), otters, costs, started)


def section(turns: Sequence[Turn], notebooks: int) -> Section:
    """The table and the verdicts."""
    nbgraders, otters = [t.nbgrader for t in turns], [t.otter for t in turns]
    rows = [
        ("nbgrader autograde", *_costs(nbgraders), _wall([t.single for t in turns]), "", ""),
        ("otter run", *_costs(otters), _wall(otters), "", ""),
    ]
    for name in OURS:
        for jobs in (1, JOBS):
            costs = [t.ours[name, jobs] for t in turns]
            rows.append(
                (
                    f"grader, {LABELS[name]}, --jobs {jobs}",
                    *_costs(costs),
                    _wall([t.started[name] for t in turns]) if jobs == 1 else "",
                    spread(_ratios(turns, "nbgrader", name, jobs)),
                    spread(_ratios(turns, "otter", name, jobs)),
                )
            )
    cpu = statistics.median(t.nbgrader.cpu / t.ours["equal_work", JOBS].cpu for t in turns)
    all_cpu = statistics.median(t.nbgrader.cpu / t.ours["vit_defects", JOBS].cpu for t in turns)
    otter_cpu = statistics.median(t.otter.cpu / t.ours["equal_work", JOBS].cpu for t in turns)
    return Section(
        "Beside nbgrader and Otter",
        f"The same {notebooks} notebooks (the reference and legitimate forms; definitions only, so that "
        f"nothing trains in any tool), graded in {len(turns)} turns, one tool after the other. *Equal work*: "
        "the same four assertions for each tool (shapes of PreNorm, FeedForward and ViT; Attention treats "
        "tokens alike). *All our checks*: the whole of `vit_defects`, plots included. Ours runs with all "
        "layers of isolation; nbgrader and `otter run` have none. A further submission costs (whole class - "
        "one alone) / (class - 1), in seconds. `otter run` starts anew for each submission, so each costs "
        f"the same; it gets one in {len(turns)} of them per turn, one after the other. nbgrader cannot grade "
        "side by side: ours with --jobs 1, and the processor time of all processes, are there for a fair "
        "look. The other tools "
        f"have an environment of their own ({_pins()}); PyTorch and what else the notebooks import are found "
        "in ours, behind their own packages. Every grade is full marks, or the program stops.",
        (
            "",
            "a further submission, wall s",
            "processor s",
            "one alone, wall s",
            "nbgrader's wall / ours",
            "Otter's wall / ours",
        ),
        tuple(rows),
        (
            _verdict("Equal work, how many times less than nbgrader", turns, "nbgrader", "equal_work", 15),
            _verdict("Equal work, how many times less than Otter", turns, "otter", "equal_work", 50),
            _verdict(
                "All our checks, how many times less than nbgrader's four assertions",
                turns,
                "nbgrader",
                "vit_defects",
                11,
            ),
            f"In processor time, ours is {cpu:.1f} times less than nbgrader's and {otter_cpu:.1f} times less "
            f"than Otter's for equal work, and {all_cpu:.1f} times less than nbgrader's for all our checks.",
        ),
    )


def _verdict(claim: str, turns: Sequence[Turn], other: str, name: str, limit: float) -> str:
    ratio = statistics.median(_ratios(turns, other, name, JOBS))
    return verdict(f"{claim} (wall, ours with --jobs {JOBS})", ratio, limit, at_most=False)


def _ratios(turns: Sequence[Turn], other: str, name: str, jobs: int) -> list[float]:
    return [getattr(t, other).wall / t.ours[name, jobs].wall for t in turns]


def _costs(costs: Sequence[Cost]) -> tuple[str, str]:
    return spread([c.wall for c in costs], digits=3), spread([c.cpu for c in costs], digits=3)


def _wall(costs: Sequence[Cost]) -> str:
    return spread([c.wall for c in costs])


def _pins() -> str:
    rows = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return ", ".join(row.replace("==", " ") for row in rows if "==" in row)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
