"""How a training is shown: progress while it runs, and its results."""

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from grader.cli.homework_view import call_rows, line_at, training_rows
from grader.cli.terminal_page import Page
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, TrainingOutcome
from grader.domain.formatting import counted, duration, listed, named, percent, points, quantity
from grader.domain.program_run import Plan
from grader.kit.splits import Splits
from grader.reports.measured_words import MeasuredWords, measured_words
from grader.reports.student.training_texts import training_fix_text
from grader.scoring import passes
from grader.students.homework_training import StoppedTraining, TrainingEstimate
from grader.students.own_training import LocalTraining
from grader.students.prospect import absent_for_training

if TYPE_CHECKING:
    from grader.training import EpochReport

WIDTH = 14  # of the column of names


class TrainView:
    """A progress bar on a terminal, a line for each epoch elsewhere. A context manager that ends the bar."""

    def __init__(self, path: Path, assignment: Assignment) -> None:
        self._page = Page()
        self._path = path
        self._assignment = assignment
        self._program: Program | None = None
        self._started = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[progress_text]}"),
            console=self._page.console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._absent = ""  # a sentence about missing libraries

    def __enter__(self) -> "TrainView":
        self._page.console.print(f"{self._path.name}: {self._assignment.title}", style="bold")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def read(self, program: Program, plan: Plan) -> None:
        """The file was read, and its training tried."""
        self._program = program
        self._page.blank()
        calls = call_rows(self._assignment)
        parameters = plan.rehearsal.parameters if plan.rehearsal is not None else None
        self._page.pairs(calls or training_rows(program, parameters, plan), width=WIDTH)
        absent = [named(library) for library in absent_for_training(program)]
        if absent:
            verb = "is" if len(absent) == 1 else "are"
            self._absent = (
                f" {listed(absent)} {verb} not installed here, so what uses it was left out: install it."
            )
        if self._page.live:
            self._bar.start()
            self._task = self._bar.add_task(
                "Reading the data" if calls else "Reading the images", total=None, progress_text=""
            )

    def images(self, splits: Splits) -> None:
        """The images were read; training begins."""
        train, test = len(splits.train_labels), len(splits.test_labels)
        text = f"{splits.name}, {counted(train, 'image')} to train on, {test} to measure on"
        self._page.pairs([("data", text)], width=WIDTH)
        self._page.blank()
        if self._task is not None:
            self._bar.update(self._task, description="Loading PyTorch, then the first epoch")

    def epoch(self, report: "EpochReport") -> None:
        """An epoch was trained and measured."""
        epoch, planned = report.epoch, report.planned
        if epoch.number == 1 and report.run == 1:
            self._started = time.monotonic() - epoch.seconds
        done, total = (report.run - 1) * planned + epoch.number, report.runs * planned
        seconds_per_epoch = (time.monotonic() - self._started) / done
        time_left = f"about {duration(seconds_per_epoch * (total - done))} left" if done < total else ""
        accuracy = f"{percent(epoch.test_accuracy)} correct"
        seed = f"seed {report.run} of {report.runs}, " if report.runs > 1 else ""
        name = f"{seed}epoch {epoch.number} of {planned}"
        if self._task is None:
            loss = f"test loss {quantity(epoch.test_loss)}"
            parts = [name, accuracy, loss, *([time_left] if time_left else [])]
            self._page.detail(", ".join(parts), indent=0)
            return
        self._bar.update(
            self._task,
            description=name,
            total=total,
            completed=done,
            progress_text=f"{accuracy}, {time_left}" if time_left else accuracy,
        )

    def measured(self, trained: LocalTraining) -> None:
        """Show what was measured."""
        page, words = self._page, self._words(trained)
        if trained.training.measured is not None:
            page.pairs(_measured_rows(trained, words), width=WIDTH)
        page.pairs(
            [("undecided", f"{doubt} A person would decide.") for doubt in trained.doubts], width=WIDTH
        )
        page.pairs([("assumed", note.text) for note in trained.notes], width=WIDTH)

    def written(self, files: Sequence[Path]) -> None:
        """Show which files were written."""
        names = ["written", *[""] * len(files)]
        self._page.pairs([(name, str(file)) for name, file in zip(names, files, strict=False)], width=WIDTH)

    def stopped(self, done: StoppedTraining) -> None:
        """Show what was reached when a person stopped it."""
        last, best = done.epochs[-1], max(done.epochs, key=lambda epoch: epoch.test_accuracy)
        rows = [
            ("trained", f"{len(done.epochs)} of {counted(done.planned, 'epoch')}"),
            ("last", f"{percent(last.test_accuracy)} correct, test loss {quantity(last.test_loss)}"),
            ("best", f"{percent(best.test_accuracy)} correct, after epoch {best.number}"),
        ]
        self._page.pairs(rows, width=WIDTH)

    def stop_verdict(self, done: StoppedTraining) -> None:
        """The last line of a training that was stopped."""
        stopped_text = f"Stopped after {len(done.epochs)} of {counted(done.planned, 'epoch')}"
        self._page.verdict(False, f"{stopped_text}: what it would have come to is not known.")

    def result(self, trained: LocalTraining) -> bool:
        """Show the verdict; returns whether training was completed."""
        page, training, words = self._page, trained.training, self._words(trained)
        if training.outcome is not TrainingOutcome.COMPLETED or training.measured is None:
            page.verdict(False, (training.reason or "Training did not finish.") + self._absent)
            if training.where:
                page.code(training.where, line_at(self._program, training.where), indent=2)
            return False
        self._advise(trained)
        if not trained.tells_points:
            page.verdict(True, _short_verdict(trained, words) + self._absent)
            return True
        threshold = trained.item.threshold if trained.item is not None else None
        reached = threshold is None or passes(training, threshold, words.scale)
        page.verdict(reached, _verdict_text(trained, words) + self._absent)
        return True

    def _words(self, trained: LocalTraining) -> MeasuredWords:
        """The words of the measure that it was trained for."""
        decided_by = [
            measure
            for measure in self._assignment.measures
            if trained.item and measure.id == trained.item.measured
        ]
        return measured_words(self._assignment, (decided_by or self._assignment.measures)[0])

    def _advise(self, trained: LocalTraining) -> None:
        limit = self._assignment.limits.training_seconds
        if trained.training.seconds > limit:
            text = f"The grader stops after {duration(limit)}: choose fewer epochs or a smaller model."
            self._page.pairs([("too slow", text)], width=WIDTH)
        elif trained.training.seconds > limit / 2:
            text = f"The grader stops after {duration(limit)}, and its machine may be slower than yours."
            self._page.pairs([("near the limit", text)], width=WIDTH)
        threshold = trained.item.threshold if trained.item is not None else None
        if trained.near and threshold is not None:
            text = (
                f"This close to {self._words(trained).round(threshold)}, the grader trains with three "
                "seeds, and their mean counts: --seeds 3 does the same."
            )
            self._page.pairs([("close", text)], width=WIDTH)
        if trained.item is not None and trained.points is not None and trained.points < trained.item.points:
            advice = training_fix_text(trained.item, _evidence(trained))
            if advice is not None:
                self._page.pairs([("worth trying", advice.hint)], width=WIDTH)


def _measured_rows(trained: LocalTraining, words: MeasuredWords) -> list[tuple[str, str]]:
    training = trained.training
    images = sum(sum(row) for row in training.confusion)
    several = f", the mean of {counted(len(training.runs), 'seed')}" if len(training.runs) > 1 else ""
    of = f" of {counted(images, 'test image')}" if words.is_accuracy else words.direction
    measured = f"{words.value(training.measured)}{of}{several}"
    if training.interval is not None:
        measured += f" (95 % interval: {words.interval(training)})"
    rows = [("accuracy" if words.is_accuracy else words.what, measured)]
    if trained.points is not None and trained.item is not None:
        worth = f"{points(trained.points)} of {points(trained.item.points)}"
        graders_data = "images" if words.is_accuracy else "data"
        rows.append(("points", f"{worth}, if the grader measured the same on its own {graders_data}"))
    count = counted(len(training.epochs), "epoch") if training.epochs else training.counted
    rows.append(("trained", f"{count} in {duration(training.seconds)} on {training.device}"))
    return rows


def _verdict_text(trained: LocalTraining, words: MeasuredWords) -> str:
    measured, value = words.value(trained.training.measured), trained.training.measured or 0.0
    if trained.item is None or trained.item.threshold is None:
        if words.is_accuracy:
            return f"{measured} of the test images are classified correctly."
        return f"{words.what[:1].upper()}{words.what[1:]}: {measured}{words.direction}."
    threshold = trained.item.threshold
    asked = words.round(threshold)
    if words.scale.reaches(value, threshold) or not passes(trained.training, threshold, words.scale):
        side = "above" if value >= threshold else "below"
        return f"{measured} is {side} the {asked} that the assignment asks for{words.direction}."
    return f"{measured} counts as the {asked} that the assignment asks for: its interval reaches that."


def _short_verdict(trained: LocalTraining, words: MeasuredWords) -> str:
    """The verdict on a training that says nothing about points."""
    why = [
        *(["the images are made up"] if trained.synthetic else []),
        *(["it was not trained for its own number of epochs"] if trained.shortened else []),
    ]
    value = words.value(trained.training.measured)
    return (
        f"The training runs, and {value} was measured. That says nothing about points: {' and '.join(why)}."
    )


def _evidence(trained: LocalTraining) -> Evidence:
    """The evidence that the advice needs."""
    program, beginning = trained.program, datetime.fromtimestamp(0, UTC)
    return Evidence(
        "",
        "",
        "",
        beginning,
        tuned=program.tuned,
        training=trained.training,
        plan=trained.plan,
        source=program.source,
    )


def show_estimates(estimates: Iterable[TrainingEstimate]) -> bool:
    """Print how long each training will take, as soon as it is known.

    Returns:
        Whether it is known for all of them.
    """
    page, total, all_known = Page(), 0.0, True
    for estimate in estimates:
        title = estimate.measure.title or "training"
        if estimate.seconds is None or estimate.epoch_seconds is None:
            all_known = False
            page.item("failed", f"{title}: how long it takes is not known. {estimate.why_not}".rstrip())
            continue
        total += estimate.seconds
        epochs = counted(estimate.epochs or 0, "epoch")
        page.item(
            "passed",
            f"{title}: {epochs} of {duration(estimate.epoch_seconds)}, about {duration(estimate.seconds)}",
        )
    if total:
        page.blank()
        page.verdict(
            all_known, f"About {duration(total)} in all{'' if all_known else ', as far as is known'}."
        )
    return all_known
