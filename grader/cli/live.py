"""What a person sees while a class is graded, and after it."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grader.domain.assignment import Assignment
from grader.domain.score import GradeStatus, Score
from grader.domain.submission import Submission
from grader.pipeline.class_run import Result
from grader.pipeline.progress import Progress, Stage, Watcher
from grader.reporting.typesetting import counted, printable

# how much of the work of a submission each stage is, for the estimate
WEIGHTS = {
    Stage.WAITING: 0.0,
    Stage.READING: 0.05,
    Stage.CHECKS: 0.25,
    Stage.TRAINING: 0.65,
    Stage.CHECKPOINT: 0.05,
}
ORDER = list(WEIGHTS)
PADDING = 3  # between two columns
WIDE = 110  # columns; a narrower terminal gets no column per rubric item
WAITING = Progress("", Stage.WAITING)


class Board:
    """The state of a run, as a picture."""

    def __init__(self, submissions: Sequence[Submission], *, trains: bool) -> None:
        self._now = {submission.student_id: WAITING for submission in submissions}
        self._trains = trains
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def note(self, progress: Progress) -> None:
        """Take note of progress."""
        with self._lock:
            self._now[progress.student_id] = progress

    def __rich__(self) -> RenderableType:
        with self._lock:
            now = dict(self._now)
        table = Table.grid(padding=(0, 2))
        for student_id, progress in now.items():
            table.add_row(student_id, *_cells(progress))
        return Group(table, self._overall(now))

    def _overall(self, now: dict[str, Progress]) -> RenderableType:
        shares = [self._share(progress) for progress in now.values()]
        share = sum(shares) / max(len(shares), 1)
        elapsed = time.monotonic() - self._started
        done = sum(progress.stage is Stage.DONE for progress in now.values())
        left = f"about {_duration(elapsed * (1 - share) / share)} left" if share > 0.03 else "estimating"
        line = Table.grid(padding=(0, 2))
        line.add_row(
            Text(f"{done} of {len(now)} done", style="bold"),
            ProgressBar(total=1.0, completed=share, width=30),
            f"{_duration(elapsed)}, {left if share < 1 else 'finished'}",
        )
        return line

    def _share(self, progress: Progress) -> float:
        if progress.stage is Stage.DONE:
            return 1.0
        before = sum(WEIGHTS[stage] for stage in ORDER[: ORDER.index(progress.stage)])
        share = before + WEIGHTS[progress.stage] * progress.share
        return share if self._trains else min(share / (WEIGHTS[Stage.READING] + WEIGHTS[Stage.CHECKS]), 1.0)


@contextlib.contextmanager
def live_display(submissions: Sequence[Submission], *, trains: bool) -> Iterator[Watcher]:
    """A live board on a terminal, quiet lines elsewhere; yields what is to be told of progress."""
    console = Console(stderr=True)
    if console.is_terminal:
        board = Board(submissions, trains=trains)
        with Live(board, console=console, refresh_per_second=8):
            yield board.note
        return
    stages: dict[str, Stage] = {}
    lock = threading.Lock()

    def say(progress: Progress) -> None:
        with lock:
            if stages.get(progress.student_id) is not progress.stage:
                stages[progress.student_id] = progress.stage
                done = sum(stage is Stage.DONE for stage in stages.values())
                console.print(
                    f"{progress.student_id}: {progress.stage} ({done} of {len(submissions)} done)",
                    markup=False,
                )

    yield say


def print_results(assignment: Assignment, results: Sequence[Result], out: Path, seconds: float) -> None:
    """The totals, and where everything is."""
    console = Console(markup=False)
    items = [item.id for item in assignment.rubric if not item.by_person]
    if console.width < WIDE:
        items = []
    table = Table(
        title=f"{assignment.title}: {counted(len(results), 'submission')}", title_justify="left", box=SIMPLE
    )
    rows = [_row(assignment, result, items) for result in results]
    left = console.width - PADDING
    for number, name in enumerate(("student", "status", "points", *items)):
        width = max(len(name), *(len(str(row[number])) for row in rows))
        table.add_column(name, justify="left" if number < 2 else "right", width=width, no_wrap=True)
        left -= width + PADDING
    # the last column gets what is left: rich would shrink all columns alike
    table.add_column("first to look at", width=max(left, 12), no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console.print(table)
    console.print(f"class page   {out / 'index.html'}", soft_wrap=True)
    console.print(f"reports      {out / 'students'}/<student>/report.html", soft_wrap=True)
    console.print(f"tables       {out / 'results.json'}, {out / 'scores.csv'}", soft_wrap=True)
    known = sum(result.known for result in results)
    if known:
        console.print(f"{counted(known, 'unchanged submission')} not run again; --force does.")
    by_person = sum(item.points for item in assignment.rubric if item.by_person)
    console.print(
        f"{by_person:g} of {assignment.maximum:g} points are given by a person. {_duration(seconds)}."
    )


def _row(assignment: Assignment, result: Result, items: Sequence[str]) -> list[str | Text]:
    score = result.score
    points = {line.id: line.points for line in score.lines}
    shown = ["-" if points[item] is None else f"{points[item]:g}" for item in items]
    return [score.student_id, _status(score), _total(score), *shown, _first(assignment, result)]


def _first(assignment: Assignment, result: Result) -> str:
    from grader.reporting.component_reports import noted
    from grader.reporting.fixes import fixes

    if result.score.reason and result.score.status is not GradeStatus.GRADED:
        return printable(result.score.reason)
    found = fixes(assignment, result.evidence, result.score)
    messages = [fix.message for fix in found] or [
        one.message for one in result.evidence.findings if noted(one)
    ]
    return printable(messages[0].splitlines()[0]) if messages else ""


def _status(score: Score) -> Text:
    colors = {GradeStatus.GRADED: "green", GradeStatus.INCOMPLETE: "yellow", GradeStatus.REFUSED: "yellow"}
    return Text(score.status, style=colors.get(score.status, "red"))


def _total(score: Score) -> str:
    return "withheld" if score.total is None else f"{score.total:g} of {score.decided:g}"


def _cells(progress: Progress) -> list[RenderableType]:
    if progress.stage is Stage.DONE:
        return [Text("done", style="green"), "", progress.text]
    if progress.stage is Stage.WAITING:
        return [Text("waiting", style="dim"), "", ""]
    return [str(progress.stage), ProgressBar(total=1.0, completed=progress.share, width=20), progress.text]


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
