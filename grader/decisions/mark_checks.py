"""Whether a mark can be given: who, for what, how many points, with which comments."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from grader.course.toml_file import listing, remedy
from grader.decisions.mark_row import Mark
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.domain.score import rounded

TAKEN_BACK = ("none", "-", "\u2013", "\u2014")
_LONGEST = 5000  # characters of a comment
_OF_MOST = re.compile(r"\s*([^\s/]+)\s*(?:/|\\|out of|of|von|sur|از|من)\s*[^\s/]+\s*", re.IGNORECASE)


class MarkField(StrEnum):
    """What of a mark is wrong; the value is the column of a marking sheet."""

    STUDENT = "student_id"
    ITEM = "item"
    POINTS = "points"
    COMMENT = "comment"
    REMARKS = "comment_ids"


@dataclass(frozen=True)
class MarkFault:
    """What is wrong with a mark.

    Attributes:
        sentence: What is wrong and what to do, beginning in lower case, without the full stop.
    """

    field: MarkField
    sentence: str

    def __str__(self) -> str:
        return printable(f"{self.sentence}{'' if self.sentence.endswith('?') else '.'}")


class MarkRefused(UsageError):
    """Marks that cannot be given; none of them was.

    Args:
        faults: What is wrong, all of it.
        worded: How a fault is told where it stands: by default with the name of the field.
    """

    def __init__(self, faults: Sequence[MarkFault], worded: Callable[[MarkFault], str] | None = None) -> None:
        self.faults = tuple(faults)
        lines = [worded(fault) if worded else f"{fault.field.value}: {fault}" for fault in self.faults]
        super().__init__("\n".join([*lines, "Nothing was taken."]))


@dataclass(frozen=True)
class MarkChecks:
    """What marks are held against.

    Attributes:
        students: The ids that the gradebook knows.
    """

    assignment: Assignment
    students: Sequence[str]

    def known_student(self, given: str) -> str | None:
        """The student who is meant by an id: a spreadsheet takes the zeros from the front of a number."""
        if given in self.students:
            return given
        same = [student for student in self.students if student.lstrip("0") == given.lstrip("0")]
        return same[0] if given.isdigit() and len(same) == 1 else None

    def student(self, given: str) -> str | MarkFault:
        """The student who is meant by an id, or what is wrong with it."""
        if (known := self.known_student(given)) is not None:
            return known
        if not given:
            return MarkFault(MarkField.STUDENT, "it is empty. Write the student's id")
        advice = remedy(given, self.students, "Grade that submission first, or remove the row").rstrip(".")
        return MarkFault(MarkField.STUDENT, f"'{given}' is not in the gradebook. {advice}")

    def target(self, given: str) -> str | MarkFault:
        """An item, or a part of one, or what is wrong with it."""
        targets = list(self.assignment.mark_targets())
        if given in targets:
            return given
        parts = [target for target in targets if target.startswith(f"{given}.")]
        if given and parts:
            return MarkFault(
                MarkField.ITEM, f"'{given}' is marked in parts: write {listing(parts)} in rows of their own"
            )
        advice = remedy(given, targets, f"There are {listing(targets)}").rstrip(".")
        return MarkFault(MarkField.ITEM, f"the rubric has no '{given}'. {advice}")

    def points(self, value: float, target: str | None, given: str = "") -> MarkFault | None:
        """What is wrong with points.

        Args:
            target: What they are for; None where that is not known.
            given: As they were written.
        """
        most = self.assignment.mark_targets().get(target or "", math.inf)
        if 0 <= value <= most:
            return None
        return MarkFault(
            MarkField.POINTS, f"'{given or points(value)}' is not from 0 to {points(most)}. Correct it"
        )

    def words(self, mark: Mark, target: str | None, told: Sequence[str] = ()) -> list[MarkFault]:
        """What is wrong with what a mark says: its comment and the comments that were chosen.

        Args:
            target: What it is for; None where that is not known.
            told: Ids of comments that the student was told before: the comment bank may have lost them since.
        """
        faults = []
        if len(mark.comment) > _LONGEST:
            sentence = f"it has {len(mark.comment)} characters. At most {_LONGEST} are kept: cut it"
            faults.append(MarkFault(MarkField.COMMENT, sentence))
        faults += self._remarks(mark.remarks, target, told)
        if mark.points is None and (mark.comment or mark.remarks):
            field = MarkField.COMMENT if mark.comment else MarkField.REMARKS
            faults.append(
                MarkFault(field, "a comment comes with points, and there are none. Fill in 'points'")
            )
        scored = {item.id for item in self.assignment.rubric if not item.by_person}
        if mark.points is not None and target in scored and not mark.comment:
            sentence = f"the grader scores '{target}' itself. Say here why a person changes it"
            faults.append(MarkFault(MarkField.COMMENT, sentence))
        return faults

    def _remarks(self, given: Sequence[str], target: str | None, told: Sequence[str]) -> list[MarkFault]:
        bank = {remark.id: remark for remark in self.assignment.remarks}
        faults = []
        for remark_id in given:
            remark = bank.get(remark_id)
            if remark is None and remark_id in told:
                continue
            if remark is None:
                known = "comments.toml has no comments" if not bank else f"There are {listing(list(bank))}"
                advice = remedy(remark_id, list(bank), known).rstrip(".")
                sentence = f"the comment bank has no '{remark_id}'. {advice}"
                faults.append(MarkFault(MarkField.REMARKS, sentence))
            elif remark.item and target and remark.item != target.partition(".")[0]:
                sentence = f"'{remark_id}' is about '{remark.item}', not '{target}'. Choose another"
                faults.append(MarkFault(MarkField.REMARKS, sentence))
        return faults


def points_in(text: str) -> float | MarkFault | None:
    """Points as people write them: a number, or `none`; or what is wrong with the text.

    With a comma, or the Persian and Arabic mark, in the place of the point.
    """
    if not text or text.lower() in TAKEN_BACK:
        return None
    try:
        return number(text)
    except ValueError:
        share = _OF_MOST.fullmatch(text)
        advice = f"the points alone: {share[1]}" if share else "one, or leave the cell empty"
        return MarkFault(MarkField.POINTS, f"'{text}' is not a number. Write {advice}")


def number(text: str) -> float:
    """Points that are written, to as many digits as are kept.

    Raises:
        ValueError: It is not a number.
    """
    return as_kept(float(text.replace(",", ".").replace("\u066b", ".")))


def as_kept(value: float) -> float:
    """Points to as many digits as are kept."""
    return rounded(float(value)) if math.isfinite(value) else value
