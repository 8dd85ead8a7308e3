"""How a validation is shown: progress while checks are tried, and the report afterwards."""

import contextlib
import time
from collections.abc import Iterator

from rich.box import SIMPLE
from rich.console import RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grader.cli.terminal_page import Page, console
from grader.course.homework_versions import Kind
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import shown_values
from grader.domain.formatting import counted, duration, listed, printable
from grader.validation.assignment_trial import ValidatedAssignment
from grader.validation.mutation_report import MutationReport, VersionVerdict, verdict
from grader.validation.trials import Report, TrialOutcome

STARTING = "Starting (PyTorch and the checks are loaded once) ..."
FIRST = 3  # outcomes before the time is estimated
SHOWN_CHECKS = 3  # that failed, for each version


class ValidationBoard:
    """The progress of a validation, drawn on a terminal."""

    def __init__(self, assignment: Assignment, total: int) -> None:
        self._assignment = assignment
        self._total = total
        self._done = 0
        self._wrong = 0
        self._first = 0.0
        self._end = 0.0
        self._last = ""

    def note(self, outcome: TrialOutcome) -> str:
        """Take note of an outcome; returns its line for where there is no terminal."""
        judged = verdict(self._assignment, outcome)
        self._done += 1
        self._wrong += bool(judged.wrong)
        now = time.monotonic()
        self._first = self._first or now
        # the first outcome includes the start, so the pace is measured from it on
        pace = (now - self._first) / max(self._done - 1, 1)
        self._end = now + pace * (self._total - self._done)
        self._last = f"{outcome.version.name}: {judged.word}"
        done = [f"{self._done} of {self._total} done", *filter(None, [self._time_left()])]
        return f"{self._last} ({', '.join(done)})"

    def _time_left(self) -> str:
        """The time left, by the pace so far; empty while it cannot be estimated, and at the end."""
        if self._done in (*range(FIRST), self._total):
            return ""
        seconds_left = max(round(self._end - time.monotonic()), 1)
        return f"about {duration(seconds_left) if seconds_left >= 60 else f'{seconds_left} s'} left"

    def __rich__(self) -> RenderableType:
        if not self._done:
            return Text(STARTING)
        line = Table.grid(padding=(0, 2))
        line.add_row(
            Text(f"{self._done} of {self._total} done", style="bold"),
            ProgressBar(total=self._total, completed=self._done, width=30),
            self._time_left() or ("finished" if self._done == self._total else "estimating"),
            Text(f"{self._wrong} wrong", style="red") if self._wrong else "",
            Text(self._last, style="dim", no_wrap=True, overflow="ellipsis"),
        )
        return line


class ValidateView:
    """A validation on the terminal, or in plain lines where there is none."""

    def __init__(self) -> None:
        self._page = Page()
        self._tried: list[ValidatedAssignment] = []

    @contextlib.contextmanager
    def progress(self, assignment: Assignment, total: int) -> Iterator[Report]:
        """Show progress on the error stream; yields the function to call with each outcome."""
        screen = console(stderr=True, markup=False, highlight=False)
        board = ValidationBoard(assignment, total)
        if screen.is_terminal:
            with Live(board, console=screen, refresh_per_second=4, transient=True):
                yield board.note
            return
        screen.print(STARTING)
        yield lambda outcome: screen.print(board.note(outcome), soft_wrap=True)

    def show(self, validated: ValidatedAssignment) -> None:
        """Show the table, what is wrong, and the figures."""
        page, report = self._page, validated.report
        self._tried.append(validated)
        values_text = f" ({shown_values(validated.values)})" if validated.values else ""
        title = f"{validated.assignment.title}{values_text}: {counted(len(report.verdicts), 'version')}"
        table = _table(report, title)
        if page.live:
            console(markup=False, highlight=False).print(table)
        else:
            console(file=page.console.file, markup=False, highlight=False).print(table, soft_wrap=False)
        for version in report.verdicts:
            self._show_traces(version.outcome)
        for title, kind, sentences in (
            ("To be fixed", "failed", report.wrong),
            ("Notes", "note", report.notes),
        ):
            if sentences:
                page.heading(title)
            for sentence in sentences:
                page.item(kind, sentence)
        page.verdict(report.passed, f"{report.summary}. {duration(validated.seconds)}.")

    def end(self) -> None:
        """Show which values failed, where several sets of values were tried for an assignment."""
        for assignment in dict.fromkeys(validated.assignment.id for validated in self._tried):
            of_assignment = [validated for validated in self._tried if validated.assignment.id == assignment]
            if len(of_assignment) < 2:
                continue
            failed = [
                shown_values(validated.values) for validated in of_assignment if not validated.report.passed
            ]
            word = (
                f"{len(failed)} of {len(of_assignment)} sets of values fail"
                if failed
                else f"all {len(of_assignment)} pass"
            )
            self._page.heading(f"{assignment}: {word}")
            for values in failed:
                self._page.item("failed", values)

    def _show_traces(self, outcome: TrialOutcome) -> None:
        """Show how the checks of a version ended, where that was asked for."""
        for trace in outcome.traces:
            self._page.heading(f"{printable(outcome.version.name)}: {trace.check}")
            if trace.raised:
                self._page.printed(trace.raised, style="red")
            for line in trace.lines:
                self._page.printed(line, style="dim")
            for line in trace.printed.splitlines():
                self._page.printed(f"| {line}")


def _table(report: MutationReport, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for name in ("version", "part", "verdict", "called", "checks that failed"):
        table.add_column(name, overflow="fold")
    table.add_column("s", justify="right", no_wrap=True)
    section = None
    for judged in report.verdicts:
        version = judged.outcome.version
        if section is not None and version.kind is not section and version.kind in (Kind.FORM, Kind.MISTAKE):
            table.add_section()
        section = version.kind
        table.add_row(
            printable(version.name),
            "\n".join(version.parts),
            _verdict_text(judged),
            _called_text(judged),
            _failed_text(judged),
            f"{judged.outcome.seconds:.1f}",
        )
    return table


def _verdict_text(judged: VersionVerdict) -> Text:
    good = {
        "detected": "green",
        "full": "green",
        "full marks": "green",
        "0": "green",
        "flagged": "yellow",
        "advised": "yellow",
        "told apart": "green",
        "fails": "green",
        "passes": "green",
        "asks": "yellow",
    }
    return Text(judged.word, style="red" if judged.wrong else good.get(judged.word, "red"))


def _called_text(judged: VersionVerdict) -> Text:
    """`named`, or what a mistake was called instead; for a form, what it is flagged for."""
    if judged.outcome.version.kind not in (Kind.MISTAKE, Kind.PAIR):
        return Text("\n".join(judged.called), style="yellow")
    if judged.named:
        return Text("named", style="green")
    return Text("\n".join(judged.called) or ("not named" if judged.detected else ""), style="yellow")


def _failed_text(judged: VersionVerdict) -> str:
    if judged.outcome.version.kind is Kind.TEMPLATE:
        return counted(len(judged.failed), "check")
    return listed(judged.failed, SHOWN_CHECKS)
