"""The state of a grading while it runs: what is under way, how much is done, and how long it will take.

The terminal and the console both show it. It gives estimates, and writes and prints nothing.
"""

import threading
import time

from grader.domain.formatting import counted, duration
from grader.grading.concurrent_work import UNCHANGED, GradingStage, Progress
from grader.grading.time_estimate import Workload

# each stage's share of the work of a submission, until it has been measured
WEIGHTS = {
    GradingStage.READING: 0.05,
    GradingStage.CHECKS: 0.25,
    GradingStage.TRAINING: 0.65,
    GradingStage.CHECKPOINT: 0.05,
}
ENOUGH = 0.03  # of the work; from then on, the time left follows from the run's own pace


class Board:
    """The state of a run: what is under way, how much is done, and when it will end."""

    def __init__(self, workload: Workload, *, trains: bool) -> None:
        self._workload = workload
        self._total = workload.submissions + workload.unchanged
        self._weights = _stage_weights(workload, trains)
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
            else:  # a finished one may get more time
                self._done.pop(progress.student_id, None)
                self._under_way[progress.student_id] = progress

    def overall(self) -> tuple[str, float, str]:
        """(how many are done, the share of the work, the time so far and left), for a line of text."""
        with self._lock:
            done, worked = len(self._done), sum(self._done.values())
            share_under_way = sum(map(self._share, self._under_way.values()))
        to_do = max(self._total - (done - worked), 1)
        share = min((worked + share_under_way) / to_do, 1.0)
        elapsed = time.monotonic() - self._started
        done_text = f"{done} of {self._total} done"
        if done > worked:
            done_text += f", {done - worked} of them unchanged"
        if done >= self._total:
            return done_text, 1.0, _rough_time(elapsed)
        return done_text, share, f"{_rough_time(elapsed)}, {self._time_left(share, elapsed)}"

    def under_way(self) -> list[Progress]:
        """What is being worked on, in the order in which it was begun."""
        with self._lock:
            return list(self._under_way.values())

    def _time_left(self, share: float, elapsed: float) -> str:
        if share > ENOUGH:
            return f"about {_rough_time(elapsed * (1 - share) / share)} left"
        if self._workload.seconds is not None:
            return f"about {_rough_time(max(self._workload.seconds - elapsed, 1.0))} left"
        return "estimating"

    def _share(self, progress: Progress) -> float:
        """How much of one submission's work is done, 0 to 1."""
        stages = list(self._weights)
        if progress.stage not in stages:
            return 0.0
        before = sum(self._weights[stage] for stage in stages[: stages.index(progress.stage)])
        return before + self._weights[progress.stage] * progress.share


def _stage_weights(workload: Workload, trains: bool) -> dict[GradingStage, float]:
    """Stage -> its share of the work of a submission, as measured earlier where it was."""
    measured = {stage: workload.rates[stage].seconds for stage in WEIGHTS if stage in workload.rates}
    weights = measured or {
        stage: weight
        for stage, weight in WEIGHTS.items()
        if trains or stage in (GradingStage.READING, GradingStage.CHECKS)
    }
    total = sum(weights.values()) or 1.0
    return {stage: weight / total for stage, weight in weights.items()}


def workload_sentence(workload: Workload) -> str:
    """How long a run will take, for a person."""
    sentence = f"{counted(workload.submissions, 'submission')} to grade"
    if workload.unchanged:
        sentence += f", {workload.unchanged} unchanged"
    sentence += f"; {workload.jobs} at once"
    if not workload.submissions:
        return f"{sentence}."
    if workload.seconds is None:
        return (
            f"{sentence}. How long it takes will be shown soon: nothing like it has been graded on "
            "this machine yet."
        )
    stages = ", ".join(f"{stage} {duration(rate.seconds)}" for stage, rate in workload.rates.items())
    most = max(rate.submissions for rate in workload.rates.values())
    return (
        f"{sentence}; about {_rough_time(workload.seconds)}: {stages} on average, "
        f"as {counted(most, 'submission')} took on this machine."
    )


def _rough_time(seconds: float) -> str:
    """An estimated time, without false precision."""
    return f"{round(seconds)} s" if seconds < 60 else duration(seconds)
