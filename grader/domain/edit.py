"""What a person decided about grades: one record for everything that is not found out by running code."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

KEPT = "kept"  # a later run of the same files gave less: the earlier one counts
FELL = "fell"  # the run counts although it gives less than was told before


class EditKind(StrEnum):
    """What was decided."""

    MARK = "mark"  # the points of an item or a part; None: the mark is taken back
    WAIVE = "waive"  # a check counts as passed, for the whole class
    UNWAIVE = "unwaive"  # it counts again
    NO_GRADE = "no_grade"  # the last word on what cannot be graded, or lacks a file: the total is 0
    WAIVE_MISSING = "waive_missing"  # the last word on it: what it has counts all the same
    CLAIM = "claim"  # the accuracy that the student's report claims, 0 to 1
    RECEIVED = "received"  # when it came, in seconds since 1970; None: what was decided is taken back
    IN_TIME = "in_time"  # it came in time, whatever the LMS records
    EXTENSION = "extension"  # the student's own deadline, in seconds since 1970
    RUN = "run"  # the run that counts, by its number; None: the latest there was
    OWNER = "owner"  # a person says whose the submission is: the target's
    NOBODYS = "nobodys"  # a person says that it is not known whose it is: it is listed as the target
    MATCHED = "matched"  # the grader found out whose it is (the LMS says so): the target's
    HELD = "held"  # the grader found out that nobody knows whose it is: it is listed as the target
    RELEASED = "released"  # the grade left for the student: by the target (`publish`, `canvas`); its points
    ACCEPTED = "accepted"  # a file that was set aside, by its name in the target, counts as the report


BY_PERSON = (EditKind.OWNER, EditKind.NOBODYS)  # about whose a submission is
OWNERSHIP = (*BY_PERSON, EditKind.MATCHED, EditKind.HELD)
UNOWNED = (EditKind.NOBODYS, EditKind.HELD)


@dataclass(frozen=True)
class Edit:
    """One decision of a person. Edits are added, never changed: a later one outweighs an earlier one.

    Attributes:
        who: The person, as the operator gave it.
        why: The reason, in words.
        student_id: Whom it is about; None: the whole class.
        target: A rubric item (`q6`), a part of one (`q10.patches`), or a check; the digest of the submission,
            where it is about when that came, or the last word on it (empty in books of older versions: then
            it is about whatever the student handed in); KEPT or FELL of a run that gave less than was told,
            until somebody looks at that; the name of a file that was accepted as the report, empty where that
            is taken back; the id under which the submission is listed from then on; empty where the kind
            says all.
        value: Points, an accuracy, or None, by the kind.
        comment: What the student is told, in free text.
        remarks: Id -> text of the comments that were chosen from the comment bank, as they read then. Of a
            release: rubric item, or part of one -> the points that it had.
        run: The student's latest run at the time, which the person saw; None when there is none.
        sheet: The name of the marking sheet that it came from; empty for every other way.
    """

    kind: EditKind
    who: str
    when: datetime
    why: str
    student_id: str | None = None
    target: str = ""
    value: float | None = None
    comment: str = ""
    remarks: tuple[tuple[str, str], ...] = ()
    run: int | None = None
    sheet: str = ""

    @property
    def moment(self) -> datetime | None:
        """The value as a moment."""
        return None if self.value is None else datetime.fromtimestamp(self.value, UTC)


def standing_owner(edits: Iterable[Edit]) -> Edit | None:
    """The edit that says whose a submission is: a person's last word, else what the grader found out last.

    Args:
        edits: Those about one submission, oldest first, of any kind.
    """
    said = [edit for edit in edits if edit.kind in OWNERSHIP]
    return next(iter([edit for edit in said if edit.kind in BY_PERSON][-1:] or said[-1:]), None)
