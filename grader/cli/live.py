"""What a person sees while a class is graded."""

import contextlib
import threading
import time
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grader.cli.terminal import console
from grader.domain.formatting import counted, duration
from grader.grading.progress import UNCHANGED, GradingStage, Progress, Watcher
from grader.grading.time_estimate import Workload

# how much of the work of a submission each stage is, where it was never measured
WEIGHTS = {
    GradingStage.READING: 0.05,
    GradingStage.CHECKS: 0.25,
    GradingStage.TRAINING: 0.65,
    GradingStage.CHECKPOINT: 0.05,
}
ENOUGH = 0.03  # of the work: from then on its own pace tells the time left


class Board:
    """The state of a run: what is under way, how much is done, and when it will end."""

    def __init__(self, workload: Workload, *, trains: bool) -> None:
        self._workload = workload
        self._total = workload.submissions + workload.unchanged
        self._weights = _weights(workload, trains)
        self._under_way: dict[str, Progress] = {}
        self._done: dict[str, bool] = {}  # student -> whether anything was done for it
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def note(self, progress: Progress) -> None:
        """Take note of progress."""
        with self._lock:
            if progress.stage is GradingStage.DONE:
                self._under_way.pop(progress.student_id, None)
                self._done[progress.student_id] = progress.text != UNCHANGED
            else:  # one that was done gets more time
                self._done.pop(progress.student_id, None)
                self._under_way[progress.student_id] = progress

    def overall(self) -> tuple[str, float, str]:
        """(how many are done, the share of the work, how long it takes and took), for a line of text."""
        with self._lock:
            done, worked = len(self._done), sum(self._done.values())
            share_under_way = sum(map(self._share, self._under_way.values()))
        to_do = max(self._total - (done - worked), 1)
        share = min((worked + share_under_way) / to_do, 1.0)
        elapsed = time.monotonic() - self._started
        told = f"{done} of {self._total} done"
        if done > worked:
            told += f", {done - worked} of them unchanged"
        if done >= self._total:
            return told, 1.0, _rough(elapsed)
        return told, share, f"{_rough(elapsed)}, {self._left(share, elapsed)}"

    def __rich__(self) -> RenderableType:
        told, share, times = self.overall()
        with self._lock:
            under_way = list(self._under_way.items())
        workers = Table.grid(padding=(0, 2))
        for student_id, progress in under_way:
            bar = ProgressBar(total=1.0, completed=progress.share, width=20)
            workers.add_row(student_id, str(progress.stage), bar, progress.text)
        line = Table.grid(padding=(0, 2))
        line.add_row(Text(told, style="bold"), ProgressBar(total=1.0, completed=share, width=30), times)
        return Group(workers, line)

    def _left(self, share: float, elapsed: float) -> str:
        if share > ENOUGH:
            return f"about {_rough(elapsed * (1 - share) / share)} left"
        if self._workload.seconds is not None:
            return f"about {_rough(max(self._workload.seconds - elapsed, 1.0))} left"
        return "estimating"

    def _share(self, progress: Progress) -> float:
        """Of the work of one submission, 0 to 1."""
        stages = list(self._weights)
        if progress.stage not in stages:
            return 0.0
        before = sum(self._weights[stage] for stage in stages[: stages.index(progress.stage)])
        return before + self._weights[progress.stage] * progress.share


def _weights(workload: Workload, trains: bool) -> dict[GradingStage, float]:
    """Stage -> its share of the work of a submission, as measured before, if it was."""
    measured = {stage: workload.rates[stage].seconds for stage in WEIGHTS if stage in workload.rates}
    weights = measured or {
        stage: weight
        for stage, weight in WEIGHTS.items()
        if trains or stage in (GradingStage.READING, GradingStage.CHECKS)
    }
    whole = sum(weights.values()) or 1.0
    return {stage: weight / whole for stage, weight in weights.items()}


@contextlib.contextmanager
def live_display(workload: Workload, *, trains: bool) -> Iterator[Watcher]:
    """A live board on a terminal, quiet lines elsewhere; yields what is to be told of progress."""
    screen = console(stderr=True)
    screen.print(workload_sentence(workload), markup=False, highlight=False, soft_wrap=True)
    board = Board(workload, trains=trains)
    if screen.is_terminal:
        with Live(board, console=screen, refresh_per_second=8):
            yield board.note
        return

    def say(progress: Progress) -> None:
        board.note(progress)
        if progress.stage is GradingStage.DONE:
            told, _, times = board.overall()
            outcome = progress.text or "done"
            screen.print(f"{progress.student_id}: {outcome} ({told}; {times})", markup=False, highlight=False)

    yield say


def workload_sentence(workload: Workload) -> str:
    """How long a run will take, for a person."""
    told = f"{counted(workload.submissions, 'submission')} to grade"
    if workload.unchanged:
        told += f", {workload.unchanged} unchanged"
    told += f"; {workload.jobs} at once"
    if not workload.submissions:
        return f"{told}."
    if workload.seconds is None:
        return f"{told}. How long it takes is told soon: nothing like it was graded on this machine yet."
    each = ", ".join(f"{stage} {duration(rate.seconds)}" for stage, rate in workload.rates.items())
    most = max(rate.submissions for rate in workload.rates.values())
    return (
        f"{told}; about {_rough(workload.seconds)}: {each} on average, as {counted(most, 'submission')} took "
        "on this machine."
    )


def _rough(seconds: float) -> str:
    """A time that is not exact anyway."""
    return f"{round(seconds)} s" if seconds < 60 else duration(seconds)
