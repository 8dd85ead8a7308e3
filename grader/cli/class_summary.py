"""What a person sees on the terminal when a class is graded."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.cli.terminal import console
from grader.domain.assignment import Assignment
from grader.domain.formatting import SPACE, clipped, counted, duration, percent, points, printable
from grader.domain.result import Result
from grader.domain.score import GradeStatus, Score
from grader.domain.stage_time import stage_times
from grader.reports.student.fixes import fixes
from grader.reports.whole_class.class_overview import Overview, after_penalty, shown_points, shown_total
from grader.reports.whole_class.class_statistics import STATUS_WORDS
from grader.reports.whole_class.class_time import submission_times
from grader.results.class_files import report_path

PADDING = 3  # between two columns
WIDE = 110  # columns; a narrower terminal gets no column per rubric item
MOST_ROWS = 200  # students in the table; the class page has all
SLOWEST = 3  # submissions that are named
NAME = "name"
LONGEST_NAME = 24


def print_results(
    results: Sequence[Result],
    overview: Overview,
    out: Path,
    seconds: float,
    firsts: Mapping[str, bool] | None = None,
) -> None:
    """The totals, where the time went, what the whole class came to, and where everything is.

    Args:
        results: Of this run.
        overview: Of the whole class, as its page says it.
        firsts: One student for each submission of this run, and whether it was not examined again; by
            default all were.
    """
    if firsts is None:
        firsts = {result.score.student_id: False for result in results}
    assignment, unchanged = overview.assignment, sum(firsts.values())
    screen = console(markup=False)
    items = [item.id for item in assignment.rubric if not item.by_person]
    if screen.width < WIDE:
        items = []
    of_all = f" of {len(overview.results)}" if len(results) < len(overview.results) else ""
    table = Table(
        title=f"{assignment.title}: {_count(len(firsts), len(results))}{of_all}",
        title_justify="left",
        box=SIMPLE,
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
    _print_overview(overview, screen)
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
    lines = {line.id: line for line in score.lines}
    shown = [shown_points(lines[item].state, lines[item].points) for item in items]
    names = [clipped(printable(result.evidence.origin.person), LONGEST_NAME) for _ in named]
    total = _total(assignment, score)
    return [score.student_id, *names, _status(score), total, *shown, _first(assignment, result)]


def _first(assignment: Assignment, result: Result) -> str:
    if result.score.ownership is not None and result.score.held:
        return printable(result.score.ownership.reason)
    if result.score.reason and result.score.status is not GradeStatus.GRADED:
        return printable(result.score.reason)
    found = fixes(assignment, result.evidence, result.score)
    messages = [fix.message for fix in found] or [
        one.message for one in result.evidence.findings if one.flagged
    ]
    return printable(messages[0].splitlines()[0]) if messages else ""


def _status(score: Score) -> Text:
    colors = {GradeStatus.GRADED: "green", GradeStatus.INCOMPLETE: "yellow", GradeStatus.REFUSED: "yellow"}
    word = STATUS_WORDS.get(score.status, score.status.value)
    return Text(word, style=colors.get(score.status, "red"))


def _total(assignment: Assignment, score: Score) -> str:
    if score.total is None:
        return shown_total(score)
    told = f"{shown_total(score)} of {points(score.decided)}"
    return ", ".join([told, *filter(None, [after_penalty(assignment, score)])])


def _print_overview(overview: Overview, screen: Console) -> None:
    """What the first screen of the class page says of the whole class."""
    told = [_count(overview.submissions, overview.students)]
    told += [f"{number}{SPACE}{word}" for word, number in overview.counts]
    if overview.absent is not None:
        missing, listed = overview.absent
        of_all = "" if listed is None else f" of {listed} on the list"
        told.append(f"{missing}{SPACE}handed in nothing{of_all}")
    if overview.lacking:
        told.append(f"{len(overview.lacking)}{SPACE}listed by the LMS, and not in its download")
    screen.print(f"class        {', '.join(told)}", soft_wrap=True)
    screen.print(overview.release)
    for title, sections in (("What is missing", overview.holding), ("Worth a look before", overview.looks)):
        if not sections:
            continue
        screen.print(f"{title}:")
        width = max(len(section.cause.title) for section in sections)
        for section in sections:
            screen.print(f"  {section.cause.title:<{width}}  {section.counted}", soft_wrap=True)
    screen.print()


def _print_times(results: Sequence[Result], screen: Console) -> None:
    """Where the time of this run went."""
    pairs = [(result.evidence, result.score) for result in results]
    stages, each = stage_times(evidence for evidence, _ in pairs), submission_times(pairs)
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
