"""What a person sees on the terminal when a class is graded."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.cli.terminal import console
from grader.domain.assignment import Assignment
from grader.domain.score import GradeStatus, Score
from grader.pipeline.class_files import report_path
from grader.pipeline.result import Result
from grader.reporting.class_time import stage_times, submission_times
from grader.reporting.component_reports import noted
from grader.reporting.fixes import fixes
from grader.reporting.typesetting import clipped, counted, duration, percent, printable

PADDING = 3  # between two columns
WIDE = 110  # columns; a narrower terminal gets no column per rubric item
MOST_ROWS = 200  # students in the table; the class page has all
SLOWEST = 3  # submissions that are named
NAME = "name"
LONGEST_NAME = 24


def print_results(
    assignment: Assignment,
    results: Sequence[Result],
    out: Path,
    seconds: float,
    firsts: Mapping[str, bool] | None = None,
) -> None:
    """The totals, where the time went, and where everything is.

    Args:
        firsts: One student for each submission, and whether it was not examined again; by default all were.
    """
    if firsts is None:
        firsts = {result.score.student_id: False for result in results}
    unchanged = sum(firsts.values())
    screen = console(markup=False)
    items = [item.id for item in assignment.rubric if not item.by_person]
    if screen.width < WIDE:
        items = []
    table = Table(
        title=f"{assignment.title}: {_count(len(firsts), len(results))}", title_justify="left", box=SIMPLE
    )
    named = [NAME] if any(result.evidence.origin.person for result in results) else []
    rows = [_row(assignment, result, items, named) for result in results[:MOST_ROWS]]
    left = screen.width - PADDING
    for number, name in enumerate(("student", *named, "status", "points", *items)):
        width = max([len(name), *(len(str(row[number])) for row in rows)])
        left_hand = name in ("student", NAME, "status")
        table.add_column(name, justify="left" if left_hand else "right", width=width, no_wrap=True)
        left -= width + PADDING
    # the last column gets what is left: rich would shrink all columns alike
    table.add_column("first to look at", width=max(left, 12), no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    screen.print(table, soft_wrap=False)
    if len(results) > MOST_ROWS:
        screen.print(f"... and {len(results) - MOST_ROWS} more: see the class page.\n")
    _print_times([one for one in results if firsts.get(one.score.student_id) is False], screen)
    screen.print(f"class page   {out / 'index.html'}", soft_wrap=True)
    screen.print(f"reports      {report_path(out, '<student>')}", soft_wrap=True)
    screen.print(f"tables       {out / 'results.json'}, {out / 'scores.csv'}", soft_wrap=True)
    if unchanged:
        screen.print(f"{counted(unchanged, 'unchanged submission')} not run again; --force does.")
    by_person = sum(item.points for item in assignment.rubric if item.by_person)
    screen.print(
        f"{by_person:g} of {assignment.maximum:g} points are given by a person. {duration(seconds)}."
    )


def _count(submissions: int, students: int) -> str:
    """How many submissions there are, and of how many students where teams handed in together."""
    told = counted(submissions, "submission")
    return told if submissions == students else f"{told} of {counted(students, 'student')}"


def _row(
    assignment: Assignment, result: Result, items: Sequence[str], named: Sequence[str]
) -> list[str | Text]:
    score = result.score
    points = {line.id: line.points for line in score.lines}
    shown = ["-" if points[item] is None else f"{points[item]:g}" for item in items]
    names = [clipped(printable(result.evidence.origin.person), LONGEST_NAME) for _ in named]
    return [score.student_id, *names, _status(score), _total(score), *shown, _first(assignment, result)]


def _first(assignment: Assignment, result: Result) -> str:
    if result.score.ownership is not None and result.score.held:
        return printable(result.score.ownership.reason)
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


def _print_times(results: Sequence[Result], screen: Console) -> None:
    """Where the time of this run went."""
    pairs = [(result.evidence, result.score) for result in results]
    stages, each = stage_times(pairs), submission_times(pairs)
    if not stages:
        return
    table = Table(title="Where the time went", title_justify="left", box=SIMPLE)
    for name in ("stage", "submissions", "share", "median", "longest"):
        table.add_column(name, justify="left" if name == "stage" else "right", no_wrap=True)
    for stage in stages:
        table.add_row(
            stage.stage, str(stage.submissions), percent(stage.share), duration(stage.median),
            duration(stage.longest),
        )  # fmt: skip
    screen.print(table, soft_wrap=False)
    if len(each) > SLOWEST:
        named = ", ".join(f"{one.student_id} ({duration(one.total)})" for one in each[:SLOWEST])
        screen.print(f"slowest      {named}\n", soft_wrap=True)
