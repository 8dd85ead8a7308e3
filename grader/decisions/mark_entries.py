"""Marks as entries: a row of a marking sheet, whether a mark can be given, and what becomes of it.

It holds a row (a student and an item, or a part of one), the checks of who, for what, how many points and
with which comments, and marks that say something new, whoever they reach of a team, as edits. It reads
and writes no files (`sheet_files` does), and it changes no gradebook.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from grader.course.toml_file import listing, remedy
from grader.domain.assignment import Assignment, Remark
from grader.domain.edit import Marked
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.domain.score import rounded

# in the order of the sheet; markers fill in the three that are FILLED
FILLED = ("points", "comment", "comment_ids")
COLUMNS = (
    "student_id",
    "item",
    "title",
    "max",
    *FILLED,
    "marked_by",
    "claimed_accuracy",
    "measured_accuracy",
    "checkpoint_accuracy",
    "hyperparameters",
    "note",
    "report",
    "answers",
    "exported",
)
_SEPARATOR = "-"  # between the token of a mark and how many there had been
NEEDED = ("student_id", "item", "points")


@dataclass(frozen=True)
class Mark:
    """What a marker filled in.

    Attributes:
        points: None: no mark.
        comment: Free text for the student.
        remarks: Ids of the comment bank.
    """

    points: float | None = None
    comment: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        """A short text that another mark does not have, which tells an untouched row from a filled one.

        It begins with a letter, or a spreadsheet would take some for numbers.
        """
        told = f"{self.points}\x1f{self.comment}\x1f{' '.join(self.remarks)}"
        return f"v{sha256(told.encode('utf-8', 'replace')).hexdigest()[:10]}"


@dataclass(frozen=True)
class MarkRow:
    """A row as it is exported.

    Attributes:
        student_id: Whose; of a team, the first's.
        target: The item (`q6`), or the part of one (`q10.class_token`).
        mark: The mark that stands.
        number: How many marks were given or taken back so far.
        marked_by: Whose it is; empty while there is none.
        evidence: Column -> text: what helps to mark.
        report: The relative address of the student's report.
        answers: Of the page that shows the student's PDF; empty where none was accepted.
        awaiting: Whether a person still has to mark it.
        team: All who handed it in together, sorted; () for a student's own.
    """

    student_id: str
    target: str
    title: str
    maximum: float
    mark: Mark
    marked_by: str
    evidence: dict[str, str]
    report: str
    answers: str
    awaiting: bool
    number: int = 0
    team: tuple[str, ...] = ()

    @property
    def exported(self) -> str:
        """What the sheet keeps of the mark that stood when it was made."""
        return f"{self.mark.token}{_SEPARATOR}{self.number}"


def mark_of(edit: Marked | None) -> Mark:
    """The mark that an edit gave; none for no edit, and for one that took a mark back."""
    if edit is None or edit.points is None:
        return Mark()
    return Mark(rounded(edit.points), edit.comment, tuple(remark_id for remark_id, _ in edit.remarks))


def stood(exported: str) -> tuple[str, int | None]:
    """(the token of the mark that stood, how many there had been) when a sheet was made.

    Sheets of older versions do not tell the number.
    """
    token, _, number = exported.partition(_SEPARATOR)
    return token, int(number) if number.isdecimal() else None


# --- mark checks -----------------------------------------------------------------------------------------


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


# --- mark entries ----------------------------------------------------------------------------------------


Marks = Mapping[tuple[str, str], Marked]
"""(student, item or part) -> the last mark, which may have taken an earlier one back."""


@dataclass(frozen=True)
class Entry:
    """A checked mark that says something new.

    Attributes:
        place: Where it stands: a sheet and its row; empty for what is in no sheet.
        before: The mark that stands, and whose it is.
        sheet: The name of the sheet; empty for what is in none.
        texts: Id -> text of the comments that the student was told so far.
        mate: Of the same team as the student whom the mark is about.
    """

    place: str
    student_id: str
    target: str
    mark: Mark
    before: Marked | None
    sheet: str = ""
    texts: tuple[tuple[str, str], ...] = ()
    mate: bool = False

    def __str__(self) -> str:
        old, who = mark_of(self.before), self.before.who if self.before else ""
        stood = f"{points(old.points)} ({who})" if old.points is not None else "no mark"
        new = "no mark" if self.mark.points is None else points(self.mark.points)
        return f"{self.student_id} {self.target}: {stood} -> {new}"


@dataclass(frozen=True)
class MarkNote:
    """What stays as it is although a mark says something else.

    Attributes:
        place: Where that mark stands; empty for what is in no sheet.
        sentence: What stays, and why.
    """

    place: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}" if self.place else self.sentence


def with_mates(
    entries: Mapping[tuple[str, str], Entry], marks: Marks, teams: Mapping[str, Sequence[str]]
) -> tuple[list[Entry], list[MarkNote]]:
    """The entries, and the same for those of a team who have none and no mark of their own.

    Args:
        entries: By student and item or part.
        marks: Those that stand.
        teams: Student -> all who handed in the same together.
    """
    every, notes = dict(entries), []
    for (student_id, target), entry in entries.items():
        for mate in teams.get(student_id, ()):
            key, other = (mate, target), entries.get((mate, target))
            if other is not None and other.mark != entry.mark and mate > student_id:
                differ = (
                    f"{student_id} and {mate} handed in together, and have {said(entry.mark)} and "
                    f"{said(other.mark)} for '{target}'."
                )
                notes.append(MarkNote(f"{entry.place} and {other.place}", differ))
            if key in every or mark_of(marks.get(key)) == entry.mark:
                continue
            own = marks.get(key)
            if own is not None and own.points is not None and mark_of(own) != mark_of(entry.before):
                keeps = (
                    f"{mate}, of the same team as {student_id}, keeps {said(mark_of(own))} for '{target}', "
                    f"which {own.who} gave to {mate} alone."
                )
                notes.append(MarkNote(entry.place, keeps))
                continue
            every[key] = replace(entry, student_id=mate, before=own, mate=True)
    return list(every.values()), notes


def said(mark: Mark) -> str:
    """A mark's points, or that there are none."""
    return TAKEN_BACK[0] if mark.points is None else points(mark.points)


def edits_of(
    entries: Sequence[Entry], assignment: Assignment, *, who: str, when: datetime, why: str = ""
) -> list[Marked]:
    """The entries as the gradebook keeps them, in their order.

    Args:
        who: The marker.
        why: The reason, where it is not in an entry's comment. The student reads it.
    """
    bank: dict[str, Remark] = {remark.id: remark for remark in assignment.remarks}
    edits = []
    for entry in entries:
        texts = dict(entry.texts)
        remarks = tuple(
            (remark_id, bank[remark_id].text if remark_id in bank else texts.get(remark_id, ""))
            for remark_id in entry.mark.remarks
        )
        edits.append(
            Marked(
                who=who,
                when=when,
                why=why,
                student_id=entry.student_id,
                target=entry.target,
                points=entry.mark.points,
                # a mark that is taken back has no comment of its own
                comment=why if entry.mark.points is None else entry.mark.comment,
                remarks=remarks,
                sheet=entry.sheet,
            )
        )
    return edits
