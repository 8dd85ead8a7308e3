"""How a study is shown: progress while it runs, and its results."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from rich.box import SIMPLE
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from grader.cli.terminal_page import console
from grader.domain.formatting import counted, duration, percent, printable
from grader.grading.submission_study import Choice, EpochWatcher, Study, SubmissionStudy
from grader.reports.plots.training_plots import study_value
from grader.training import EpochReport


class StudyView:
    """A progress bar over all epochs on a terminal, a line per training elsewhere."""

    def __init__(self) -> None:
        self._console = console()

    @contextlib.contextmanager
    def progress(self, file: Path, planned: Study) -> Iterator[EpochWatcher]:
        """Say what will be trained; yields the function to call after each epoch."""
        trainings = len(planned.choices) + 1
        epochs_text = f" of {counted(planned.epochs, 'epoch')}" if planned.epochs else ""
        heading = printable(f"{file.name}: {counted(trainings, 'training')}{epochs_text}")
        self._console.print(heading, style="bold", markup=False)
        for sentence in planned.left_out:
            self._console.print(printable(sentence), markup=False)
        columns = TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn()
        bar = Progress(
            *columns, TextColumn("{task.fields[time_left]}"), console=self._console, transient=True
        )
        task = bar.add_task("Training", total=1.0, time_left="")
        done: dict[Choice | None, tuple[int, int]] = {}
        started = time.monotonic()

        def epoch(choice: Choice | None, report: EpochReport) -> None:
            done[choice] = report.epoch.number, report.planned
            share = sum(number / planned_epochs for number, planned_epochs in done.values()) / trainings
            elapsed = time.monotonic() - started
            time_left = f"about {duration(elapsed * (1 - share) / share)} left" if share > 0.02 else ""
            bar.update(task, completed=share, time_left=time_left)
            if not self._console.is_terminal and report.epoch.number == report.planned:
                name = f"{choice.field} {choice.value}" if choice else "own values"
                line = f"{name}: {percent(report.epoch.test_accuracy)}. {time_left}".rstrip()
                self._console.print(line, markup=False)

        if self._console.is_terminal:
            bar.start()
        try:
            yield epoch
        finally:
            bar.stop()

    def result(self, done: SubmissionStudy) -> None:
        """Show the table, and where everything is."""
        rows, words = done.rows, done.words
        table = Table(box=SIMPLE)
        measured_name = "accuracy" if words.is_accuracy else words.what
        for name in ("value", "setting", measured_name, "95 % interval", "time"):
            table.add_column(name, justify="left" if name == "value" else "right")
        before = ""
        for field, value, is_own, training in rows:
            measured = study_value(training, words)
            outcome = training.outcome.value.replace("_", " ")
            shown = outcome if measured is None else words.value(measured)
            interval = "" if measured is None else words.interval(training)
            name = "" if field == before else field.replace("_", " ")
            mark = f"{value} (own)" if is_own else value
            table.add_row(name, mark, shown, interval, duration(training.seconds))
            before = field
        self._console.print(table, soft_wrap=False)
        for training in {id(row[3]): row[3] for row in rows}.values():
            if training.reason:
                self._console.print(printable(training.reason), markup=False)
        for file in done.files:
            self._console.print(str(file), markup=False, soft_wrap=True)
