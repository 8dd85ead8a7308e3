"""The attempts of students as the book holds them: of each, the run that speaks for it.

An attempt is what a student handed in at one time; its runs have the same digest. Of several runs, the one
that was last said to count speaks for it, else the latest. It never decides which attempt counts.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from grader.domain.edit import RunChosen
from grader.domain.submission_result import Attempt
from grader.gradebook.records import NOTHING, damaged, edit_of, evidence_from, kind_of
from grader.gradebook.statements import EDITS, RUNS, rows_about

Runs = dict[int, int]
"""The runs of one attempt: the number of each -> its id in the whole book, in ascending order."""


def attempts_of(
    connection: Connection, assignment_id: str, row: str | None = None, *, least: int = 2
) -> dict[str, tuple[Attempt, ...]]:
    """Row -> its attempts in the order of their first runs, of the rows that have enough of them.

    Args:
        row: Only this one; None: all.
        least: How many attempts are enough: one alone is compared with nothing.

    Raises:
        UsageError: A record is damaged.
    """
    columns = select(RUNS.c.id, RUNS.c.student_id, RUNS.c.number, RUNS.c.submission_digest, RUNS.c.status)
    by_row: dict[str, dict[str, Runs]] = {}
    for run in connection.execute(columns.where(rows_about(RUNS, assignment_id, row)).order_by(RUNS.c.id)):
        if run.status != NOTHING:
            runs_by_digest = by_row.setdefault(run.student_id, {})
            runs_by_digest.setdefault(run.submission_digest, {})[run.number] = run.id
    several = {
        own_row: runs_by_digest for own_row, runs_by_digest in by_row.items() if len(runs_by_digest) >= least
    }
    chosen = _chosen_numbers(connection, assignment_id, row) if several else {}
    return {
        own_row: tuple(
            _attempt(connection, own_row, runs, chosen.get(own_row, ())) for runs in runs_by_digest.values()
        )
        for own_row, runs_by_digest in several.items()
    }


def _chosen_numbers(
    connection: Connection, assignment_id: str, row: str | None
) -> Mapping[str, Sequence[int]]:
    """Row -> the numbers of the runs that were said to count, oldest first."""
    wanted = rows_about(EDITS, assignment_id, row) & (EDITS.c.kind == kind_of(RunChosen))
    numbers: dict[str, list[int]] = {}
    for edit in map(edit_of, connection.execute(select(EDITS).where(wanted).order_by(EDITS.c.id))):
        number = edit.number if isinstance(edit, RunChosen) and edit.number is not None else edit.run
        if edit.student_id is not None and number is not None:
            numbers.setdefault(edit.student_id, []).append(number)
    return numbers


def _attempt(connection: Connection, row: str, runs: Runs, chosen: Sequence[int]) -> Attempt:
    number = next((choice for choice in reversed(chosen) if choice in runs), max(runs))
    text = connection.execute(select(RUNS.c.evidence).where(RUNS.c.id == runs[number])).scalar_one()
    try:
        evidence = evidence_from(text)
    except (ValueError, RecursionError):
        raise damaged(f"run {number} of '{row}'") from None
    return Attempt(evidence, number, min(runs))
