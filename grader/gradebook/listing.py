"""Under which id the book lists what it keeps, by what the grader found out, and people said, of whose it is.

A row of the book keeps the id that its submission had when it was first recorded; it is never changed. Where
the submission turns out to be somebody else's, or nobody's for now, edits say so, and reading translates. Of
several submissions that are one student's, that which a person named last counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grader.domain.edit import Edit, Listed, Released, standing_owner


@dataclass(frozen=True)
class Listing:
    """Rows and the ids that they are listed under.

    Attributes:
        shown: Row -> id.
        current: Id -> the row that counts for it.
        said: Row -> the edit that says so; rows of which nothing was said keep their own id.
    """

    shown: Mapping[str, str] = field(default_factory=dict)
    current: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, Listed] = field(default_factory=dict)

    def row(self, student_id: str) -> str:
        """The row that counts for an id; of an id that is not listed, the row that began with it."""
        return self.current.get(student_id, student_id)

    def listed(self, row: str) -> str | None:
        """The id that a row is listed under; None where another row counts for that id."""
        student_id = self.shown.get(row, row)
        return student_id if self.current.get(student_id, row) == row else None

    def of(self, edit: Edit) -> Edit | None:
        """An edit about a row as one about the id that it is listed under; None where that is not listed.

        A release is about the person who was told, whatever turned out about the submission since.
        """
        if isinstance(edit, Released):
            return edit
        student_id = self.listed(edit.student_id) if edit.student_id is not None else None
        if edit.student_id is None or student_id == edit.student_id:
            return edit
        return None if student_id is None else replace(edit, student_id=student_id)


def listing(rows: Iterable[str], edits: Sequence[Edit]) -> Listing:
    """Under which ids rows are listed.

    Args:
        rows: All that the book keeps of an assignment.
        edits: Those about rows, oldest first, of any kind.
    """
    own: dict[str, list[tuple[int, Listed]]] = {row: [] for row in rows}
    for place, edit in enumerate(edits):
        if isinstance(edit, Listed) and edit.student_id in own:
            own[edit.student_id].append((place, edit))
    shown, said, ranks = {}, {}, {}
    for row, told in own.items():
        last = standing_owner(edit for _, edit in told)
        shown[row] = row if last is None else last.listed_as
        ranks[row] = (False, -1)
        if last is not None:
            said[row] = last
            ranks[row] = (last.by_person, max(place for place, edit in told if edit is last))
    current: dict[str, str] = {}
    for row, student_id in sorted(shown.items()):
        other = current.get(student_id)
        if other is None or ranks[other] < ranks[row]:
            current[student_id] = row
    return Listing(shown, current, said)
