"""The comments for a question that markers have used or may use, with how often each was given."""

from collections import Counter
from dataclasses import dataclass

from grader.domain.edit import Marked
from grader.gradebook import MarkingRecords
from grader.marking.desk import Desk, assignment_now, current_records, require_question


@dataclass(frozen=True)
class BankComment:
    """A comment that can be given again.

    Attributes:
        id: In comments.toml; empty: a marker wrote it freely.
        uses: In how many marks of the question it stands now.
        by: Who wrote it freely first; empty for comments with an id.
    """

    id: str
    text: str
    uses: int
    by: str


def comment_bank(
    desk: Desk, target: str, *, marker: str = "", search: str = "", limit: int = 50
) -> tuple[BankComment, ...]:
    """The comments for a question, those used most first; rubric items are not among them.

    Args:
        marker: Who asks: nothing of the first marks on tasks that they mark a second time is used; empty:
            anybody.
        search: Words of which a comment must have all, in any order and case.

    Raises:
        UnknownTask: There is no such question.
    """
    require_question(desk, target)
    assignment = assignment_now(desk)
    with current_records(desk) as records:
        second_of = records.markers.allocations(target, second=True) if marker else {}
        marks = [
            mark
            for mark in _marks(desk, records, target)
            if not marker or second_of.get(mark.student_id or "") != marker
        ]
    uses: Counter[str] = Counter()
    written: dict[str, list[str]] = {}
    for mark in marks:
        uses.update(remark_id for remark_id, _ in mark.remarks)
        if mark.comment:
            written.setdefault(mark.comment, []).append(mark.who)
    item = target.partition(".")[0]
    bank = [
        BankComment(remark.id, remark.text, uses[remark.id], "")
        for remark in assignment.remarks
        if remark.points is None and remark.item in ("", item)
    ]
    bank += [BankComment("", text, len(writers), writers[0]) for text, writers in written.items()]
    words = search.casefold().split()
    matching = [
        comment
        for comment in bank
        if all(word in f"{comment.id} {comment.text}".casefold() for word in words)
    ]
    return tuple(sorted(matching, key=lambda comment: -comment.uses)[:limit])


def _marks(desk: Desk, records: MarkingRecords, target: str) -> list[Marked]:
    """The marks of a question that stand, oldest first; a mark never changes, so each is read once."""
    numbers = records.rows.mark_numbers(target)
    read = desk.read_marks
    read.update(records.rows.marks_numbered([number for number in numbers if number not in read]))
    return [read[number] for number in numbers if number in read]
