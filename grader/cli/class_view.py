"""What a person sees on the terminal while a class is graded, and the summary when it is done.

It shows the live board with stages and the time left, the table of students, where the time went, and what
to look at first. It decides what fits on a screen. Totals, causes and statistics come from the results and
the reports; none are computed here.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grader.cli.terminal_page import console
from grader.domain.assignment import Assignment
from grader.domain.formatting import SPACE, clipped, counted, duration, percent, points, printable
from grader.domain.score import GradeStatus, Score
from grader.domain.submission_result import Result, stage_times
from grader.grading.concurrent_work import GradingStage, Progress, Watcher
from grader.grading.progress_board import Board, workload_sentence
from grader.grading.time_estimate import Workload
from grader.reports.student.fixes import fixes
from grader.reports.whole_class.class_overview import Overview, after_penalty, shown_points, shown_total
from grader.reports.whole_class.class_statistics import STATUS_WORDS, submission_times
from grader.results.class_files import report_path


class _ShownBoard:
    """The state of a run as it stands on a terminal."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __rich__(self) -> RenderableType:
        done_text, share, times = self._board.overall()
        workers = Table.grid(padding=(0, 2))
        for progress in self._board.under_way():
            bar = ProgressBar(total=1.0, completed=progress.share, width=20)
            workers.add_row(progress.student_id, str(progress.stage), bar, progress.text)
        line = Table.grid(padding=(0, 2))
        line.add_row(Text(done_text, style="bold"), ProgressBar(total=1.0, completed=share, width=30), times)
        return Group(workers, line)


@contextlib.contextmanager
def live_display(workload: Workload, *, trains: bool) -> Iterator[Watcher]:
    """A live board on a terminal, plain lines elsewhere; yields the function to call with progress."""
    screen = console(stderr=True)
    screen.print(workload_sentence(workload), markup=False, highlight=False, soft_wrap=True)
    board = Board(workload, trains=trains)
    if screen.is_terminal:
        with Live(_ShownBoard(board), console=screen, refresh_per_second=8):
            yield board.note
        return

    def say(progress: Progress) -> None:
        board.note(progress)
        if progress.stage is GradingStage.DONE:
            done_text, _, times = board.overall()
            outcome = progress.text or "done"
            screen.print(
                f"{progress.student_id}: {outcome} ({done_text}; {times})", markup=False, highlight=False
            )

    yield say


# --- class summary ---------------------------------------------------------------------------------------


PADDING = 3  # between two columns
WIDE = 110  # columns; on a narrower terminal, rubric items have no columns
MOST_ROWS = 200  # students in the table; the class page has all
SLOWEST = 3  # submissions that are named
NAME = "name"
LONGEST_NAME = 24


def print_results(
    results: Sequence[Result],
    overview: Overview,
    out: Path,
    seconds: float,
    representatives: Mapping[str, bool] | None = None,
) -> None:
    """Print the totals, where the time went, a summary of the whole class, and where everything is.

    Args:
        results: The results of this run.
        overview: The overview of the whole class, as its page shows it.
        representatives: One student for each submission of this run -> whether it was unchanged and not
            examined again; None: all were examined.
    """
    if representatives is None:
        representatives = {result.score.student_id: False for result in results}
    assignment, unchanged = overview.assignment, sum(representatives.values())
    screen = console(markup=False)
    items = [item.id for item in assignment.rubric if not item.by_person]
    if screen.width < WIDE:
        items = []
    of_all = f" of {len(overview.results)}" if len(results) < len(overview.results) else ""
    table = Table(
        title=f"{assignment.title}: {_counted_submissions(len(representatives), len(results))}{of_all}",
        title_justify="left",
        box=SIMPLE,
    )
    named = [NAME] if any(result.evidence.origin.person for result in results) else []
    rows = [_student_row(assignment, result, items, named) for result in results[:MOST_ROWS]]
    columns_left = screen.width - PADDING
    for number, name in enumerate(("student", *named, "status", "points", *items)):
        width = max([len(name), *(len(str(row[number])) for row in rows)])
        left_hand = name in ("student", NAME, "status")
        table.add_column(name, justify="left" if left_hand else "right", width=width, no_wrap=True)
        columns_left -= width + PADDING
    # the last column gets what is left: rich would shrink all columns alike
    table.add_column("first to look at", width=max(columns_left, 12), no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    screen.print(table, soft_wrap=False)
    if len(results) > MOST_ROWS:
        screen.print(f"... and {len(results) - MOST_ROWS} more: see the class page.\n")
    _print_times(
        [result for result in results if representatives.get(result.score.student_id) is False], screen
    )
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


def _counted_submissions(submissions: int, students: int) -> str:
    """How many submissions there are, and by how many students, where teams handed in together."""
    submission_count = counted(submissions, "submission")
    return (
        submission_count
        if submissions == students
        else f"{submission_count} of {counted(students, 'student')}"
    )


def _student_row(
    assignment: Assignment, result: Result, items: Sequence[str], named: Sequence[str]
) -> list[str | Text]:
    score = result.score
    lines = {line.id: line for line in score.lines}
    shown = [shown_points(lines[item].state, lines[item].points) for item in items]
    names = [clipped(printable(result.evidence.origin.person), LONGEST_NAME) for _ in named]
    total = _total_text(assignment, score)
    return [
        score.student_id,
        *names,
        _status_text(score),
        total,
        *shown,
        _first_to_look_at(assignment, result),
    ]


def _first_to_look_at(assignment: Assignment, result: Result) -> str:
    if result.score.ownership is not None and result.score.held:
        return printable(result.score.ownership.reason)
    if result.score.reason and result.score.status is not GradeStatus.GRADED:
        return printable(result.score.reason)
    to_fix = fixes(assignment, result.evidence, result.score)
    messages = [fix.message for fix in to_fix] or [
        finding.message for finding in result.evidence.findings if finding.flagged
    ]
    return printable(messages[0].splitlines()[0]) if messages else ""


def _status_text(score: Score) -> Text:
    colors = {GradeStatus.GRADED: "green", GradeStatus.INCOMPLETE: "yellow", GradeStatus.REFUSED: "yellow"}
    word = STATUS_WORDS.get(score.status, score.status.value)
    return Text(word, style=colors.get(score.status, "red"))


def _total_text(assignment: Assignment, score: Score) -> str:
    if score.total is None:
        return shown_total(score)
    text = f"{shown_total(score)} of {points(score.decided)}"
    return ", ".join([text, *filter(None, [after_penalty(assignment, score)])])


def _print_overview(overview: Overview, screen: Console) -> None:
    """Print what the first screen of the class page says about the whole class."""
    counts = [_counted_submissions(overview.submissions, overview.students)]
    counts += [f"{number}{SPACE}{word}" for word, number in overview.counts]
    if overview.absent is not None:
        missing, listed = overview.absent
        of_all = "" if listed is None else f" of {listed} on the list"
        counts.append(f"{missing}{SPACE}handed in nothing{of_all}")
    if overview.lacking:
        counts.append(f"{len(overview.lacking)}{SPACE}listed by the LMS, but not in its download")
    screen.print(f"class        {', '.join(counts)}", soft_wrap=True)
    screen.print(overview.release)
    for title, sections in (("What is missing", overview.holding), ("Worth a look first", overview.looks)):
        if not sections:
            continue
        screen.print(f"{title}:")
        width = max(len(section.cause.title) for section in sections)
        for section in sections:
            screen.print(f"  {section.cause.title:<{width}}  {section.counted}", soft_wrap=True)
    screen.print()


def _print_times(results: Sequence[Result], screen: Console) -> None:
    """Print where the time of this run went."""
    pairs = [(result.evidence, result.score) for result in results]
    stages, times = stage_times(evidence for evidence, _ in pairs), submission_times(pairs)
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
    if len(times) > SLOWEST:
        named = ", ".join(f"{row.student_id} ({duration(row.total)})" for row in times[:SLOWEST])
        screen.print(f"slowest      {named}\n", soft_wrap=True)
