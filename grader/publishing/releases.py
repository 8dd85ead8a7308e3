"""Grades that leave for students: each is noted in the book, once for every way and value."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from grader.domain.edit import Edit, Released
from grader.domain.errors import UsageError
from grader.domain.result import Result
from grader.gradebook import Gradebook, Snapshot
from grader.results.page_state import note, noted
from grader.scoring import line_points


def note_releases(
    book: Gradebook,
    seen: Snapshot,
    results: Sequence[Result],
    grades: Mapping[str, float | None],
    *,
    way: str,
    who: str,
    when: datetime,
    out: Path,
) -> int:
    """Note that grades left for their students.

    No page says anything else because of it: those that told of the state before tell of the new one.

    Args:
        out: The folder of the results.
        seen: The state of the book that the results are of.
        grades: Of those whose grade left, as it did, after what lateness costs; None: none was known.
        way: `publish`, or the format that was exported.

    Returns:
        How many are new: a grade that left by this way already, and is the last that did, is noted.

    Raises:
        UsageError: The book does not take it.
    """
    made = [
        Released(
            who=who,
            when=when,
            why="",
            student_id=result.score.student_id,
            way=way,
            points=grades[result.score.student_id],
            lines=line_points(result.score),
        )
        for result in results
        if result.score.student_id in grades
    ]
    earlier = _last_releases(seen.edits)
    new = [edit for edit in made if not _is_noted(edit, earlier.get(edit.student_id or "", {}))]
    if not new:
        return 0
    state, before = book.note(new, seen), noted(out)
    if state is not None and before is not None and before.state == seen.state:
        with contextlib.suppress(UsageError):  # the next command writes what is older
            note(out, book, before.assignment, state)
    return len(new)


def unnoted_releases(
    book: Gradebook,
    seen: Snapshot,
    results: Sequence[Result],
    grades: Mapping[str, float | None],
    *,
    way: str,
    who: str,
    when: datetime,
    out: Path,
) -> str:
    """Note that grades left, as `note_releases` does.

    Returns:
        Why the book does not take it, where it does not: what was made stands all the same. Else empty.
    """
    try:
        note_releases(book, seen, results, grades, way=way, who=who, when=when, out=out)
    except UsageError as error:
        return f"the gradebook does not know that these grades left: {error}"
    return ""


_ANY = ""  # way: the last of all


def _last_releases(edits: Sequence[Edit]) -> dict[str, dict[str, Released]]:
    """Student -> way -> the last release."""
    found: dict[str, dict[str, Released]] = {}
    for edit in edits:
        if isinstance(edit, Released) and edit.student_id is not None:
            found.setdefault(edit.student_id, {}).update({edit.way: edit, _ANY: edit})
    return found


def _is_noted(edit: Released, earlier: Mapping[str, Released]) -> bool:
    return all(way in earlier and earlier[way].points == edit.points for way in (edit.way, _ANY))
