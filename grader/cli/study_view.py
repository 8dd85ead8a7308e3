"""How a study is shown while it runs, and what came of it."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich.box import SIMPLE
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from grader.cli.terminal import console
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.formatting import counted, duration, percent, printable
from grader.grading.value_study import Choice, Study, StudyRun
from grader.training import EpochReport


class StudyView:
    """A progress bar over all epochs on a terminal, a line per training elsewhere. A context."""

    def __init__(self, file: Path, planned: Study) -> None:
        self._console = console()
        self._planned = planned
        self._trainings = len(planned.choices) + 1
        self._done: dict[Choice | None, tuple[int, int]] = {}
        self._started = time.monotonic()
        columns = TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn()
        self._bar = Progress(
            *columns, TextColumn("{task.fields[left]}"), console=self._console, transient=True
        )
        self._task = self._bar.add_task("Training", total=1.0, left="")
        count = counted(self._trainings, "training")
        each = f" of {counted(planned.epochs, 'epoch')}" if planned.epochs else ""
        self._console.print(printable(f"{file.name}: {count}{each}"), style="bold", markup=False)
        for sentence in planned.left_out:
            self._console.print(printable(sentence), markup=False)

    def __enter__(self) -> "StudyView":
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def epoch(self, choice: Choice | None, told: EpochReport) -> None:
        """An epoch of a training was measured."""
        self._done[choice] = told.epoch.number, told.planned
        share = sum(done / planned for done, planned in self._done.values()) / self._trainings
        elapsed = time.monotonic() - self._started
        left = f"about {duration(elapsed * (1 - share) / share)} left" if share > 0.02 else ""
        self._bar.update(self._task, completed=share, left=left)
        if not self._console.is_terminal and told.epoch.number == told.planned:
            name = f"{choice.field} {choice.value}" if choice else "own values"
            self._console.print(f"{name}: {percent(told.epoch.test_accuracy)}. {left}".rstrip(), markup=False)

    def rows(self, runs: Sequence[StudyRun]) -> list[tuple[str, str, bool, Training]]:
        """The study by fields, with the student's own value in each."""
        own = {value.name: value.value for value in self._planned.program.tuned}
        base = next(run.training for run in runs if run.choice is None)
        rows: list[tuple[str, str, bool, Training]] = []
        for field in dict.fromkeys(choice.field for choice in self._planned.choices):
            rows.append((field, own[field], True, base))
            rows += [
                (field, run.choice.value, False, run.training)
                for run in runs
                if run.choice is not None and run.choice.field == field
            ]
        return sorted(rows, key=lambda row: (row[0], float(row[1])))

    def result(self, rows: Sequence[tuple[str, str, bool, Training]], files: Sequence[Path]) -> None:
        """Show the table, and where everything is."""
        table = Table(box=SIMPLE)
        for name in ("value", "setting", "accuracy", "95 % interval", "time"):
            table.add_column(name, justify="left" if name == "value" else "right")
        before = ""
        for field, value, own, training in rows:
            low, high = training.interval or (None, None)
            completed = training.outcome is TrainingOutcome.COMPLETED and training.accuracy is not None
            shown = percent(training.accuracy) if completed else training.outcome.value
            interval = f"{percent(low)} to {percent(high)}" if completed and low is not None else ""
            name = "" if field == before else field.replace("_", " ")
            mark = f"{value} (own)" if own else value
            table.add_row(name, mark, shown, interval, duration(training.seconds))
            before = field
        self._console.print(table, soft_wrap=False)
        for training in {id(row[3]): row[3] for row in rows}.values():
            if training.reason:
                self._console.print(printable(training.reason), markup=False)
        for file in files:
            self._console.print(str(file), markup=False, soft_wrap=True)
