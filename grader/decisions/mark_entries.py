"""Marks as entries: the rows of a marking sheet, the checks of marks, and their edits.

It holds a row (a student and an item, or a part of one) and the checks of student, item, points and
comments. It turns new marks into edits, for all members of a team. It neither reads nor writes files
(`sheet_files` does), and it changes no gradebook.
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
from grader.files.file_names import plain

# in the order of the sheet; markers fill in the columns in FILLED
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
_SEPARATOR = "-"  # between the token of a mark and the number of earlier marks
NEEDED = ("student_id", "item", "points")


@dataclass(frozen=True)
class Mark:
    """The cells that a marker filled in.

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
        """A short text, different for each mark, that distinguishes an untouched row from a filled one.

        It begins with a letter, so that a spreadsheet does not take it for a number.
        """
        content = f"{self.points}\x1f{self.comment}\x1f{' '.join(self.remarks)}"
        return f"v{sha256(content.encode('utf-8', 'replace')).hexdigest()[:10]}"


@dataclass(frozen=True)
class MarkRow:
    """A row as exported.

    Attributes:
        student_id: The student's; for a team, the first member's.
        target: The item (`q6`), or the part of one (`q10.class_token`).
        mark: The mark that stands.
        number: How many marks were given or withdrawn so far.
        marked_by: The marker; empty if there is no mark.
        evidence: Column -> text that helps to mark.
        report: The relative address of the student's report.
        answers: The relative address of the page with the student's PDF; empty if none was accepted.
        awaiting: Whether a person must still mark it.
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
        """The token and number by which the sheet records the mark that stood when it was made."""
        return f"{self.mark.token}{_SEPARATOR}{self.number}"


def mark_of(edit: Marked | None) -> Mark:
    """The mark that an edit gave; an empty one if there is no edit, or if it withdrew a mark."""
    if edit is None or edit.points is None:
        return Mark()
    return Mark(rounded(edit.points), edit.comment, tuple(remark_id for remark_id, _ in edit.remarks))


def mark_at_export(exported: str) -> tuple[str, int | None]:
    """(The token of the mark that stood, the number of earlier marks) when a sheet was made.

    Sheets of older versions do not hold the number.
    """
    token, _, number = exported.partition(_SEPARATOR)
    return token, int(number) if number.isdecimal() else None


# --- mark checks -----------------------------------------------------------------------------------------


TAKEN_BACK = ("none", "-", "\u2013", "\u2014")
_LONGEST = 5000  # characters of a comment
_OF_MOST = re.compile(
    r"\s*([-+]?\.?\d[^\s/]*)\s*(?:/|\\|out of|of|von|sur|از|من)\s*[^\s/]+\s*", re.IGNORECASE
)


class MarkField(StrEnum):
    """The field of a mark that is wrong; the value is the column of a marking sheet."""

    STUDENT = "student_id"
    ITEM = "item"
    POINTS = "points"
    COMMENT = "comment"
    REMARKS = "comment_ids"


@dataclass(frozen=True)
class MarkFault:
    """A fault of a mark.

    Attributes:
        sentence: What is wrong and what to do, beginning in lower case, without the full stop.
    """

    field: MarkField
    sentence: str

    def __str__(self) -> str:
        return printable(f"{self.sentence}{'' if self.sentence.endswith('?') else '.'}")


class MarkRefused(UsageError):
    """Marks cannot be given; none of them was.

    Args:
        faults: All faults.
        worded: Words a fault with its place; by default with the name of the field.
    """

    def __init__(self, faults: Sequence[MarkFault], worded: Callable[[MarkFault], str] | None = None) -> None:
        self.faults = tuple(faults)
        lines = [worded(fault) if worded else f"{fault.field.value}: {fault}" for fault in self.faults]
        super().__init__("\n".join([*lines, "Nothing was taken."]))


@dataclass(frozen=True)
class MarkChecks:
    """The checks of marks against an assignment and its students.

    Attributes:
        students: The ids that the gradebook knows.
    """

    assignment: Assignment
    students: Sequence[str]

    def known_student(self, given: str) -> str | None:
        """The student with an id, in digits of any script; spreadsheets drop leading zeros."""
        given = plain(given)
        if given in self.students:
            return given
        matching = [student for student in self.students if student.lstrip("0") == given.lstrip("0")]
        return matching[0] if given.isdigit() and len(matching) == 1 else None

    def student(self, given: str) -> str | MarkFault:
        """The student with an id, or what is wrong with it."""
        if (student_id := self.known_student(given)) is not None:
            return student_id
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

    def points_fault(self, value: float, target: str | None, given: str = "") -> MarkFault | None:
        """What is wrong with points.

        Args:
            target: The item that they are for; None if unknown.
            given: The points as written.
        """
        most = self.assignment.mark_targets().get(target or "", math.inf)
        if 0 <= value <= most:
            return None
        return MarkFault(
            MarkField.POINTS, f"'{given or points(value)}' is not from 0 to {points(most)}. Correct it"
        )

    def word_faults(self, mark: Mark, target: str | None, ids_before: Sequence[str] = ()) -> list[MarkFault]:
        """What is wrong with the words of a mark: its comment and the chosen comments.

        Args:
            target: The item that it is for; None if unknown.
            ids_before: Of comments that the student got before: the comment bank may have lost them since.
        """
        faults = []
        if len(mark.comment) > _LONGEST:
            sentence = f"it has {len(mark.comment)} characters. At most {_LONGEST} are kept: cut it"
            faults.append(MarkFault(MarkField.COMMENT, sentence))
        faults += self._remarks(mark.remarks, target, ids_before)
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

    def _remarks(
        self, given: Sequence[str], target: str | None, ids_before: Sequence[str]
    ) -> list[MarkFault]:
        bank = {remark.id: remark for remark in self.assignment.remarks}
        faults = []
        for remark_id in given:
            remark = bank.get(remark_id)
            if remark is None and remark_id in ids_before:
                continue
            if remark is None:
                choices = "comments.toml has no comments" if not bank else f"There are {listing(list(bank))}"
                advice = remedy(remark_id, list(bank), choices).rstrip(".")
                sentence = f"the comment bank has no '{remark_id}'. {advice}"
                faults.append(MarkFault(MarkField.REMARKS, sentence))
            elif target and not _is_about(remark, target):
                about = remark.part or remark.item
                sentence = f"'{remark_id}' is about '{about}', not '{target}'. Choose another"
                faults.append(MarkFault(MarkField.REMARKS, sentence))
        return faults


def _is_about(remark: Remark, target: str) -> bool:
    """Whether a comment may be chosen for an item, or a part of one."""
    if remark.part:
        return remark.part == target
    return not remark.item or remark.item == target.partition(".")[0]


def points_in(text: str) -> float | MarkFault | None:
    """Points as people write them (None for `none` or an empty text), or what is wrong with the text.

    A comma, or the Persian and Arabic decimal separator, may replace the point.
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
    """Written points, rounded to the stored precision.

    Raises:
        ValueError: It is not a number.
    """
    if "_" in text:
        raise ValueError(text)  # Python's sign between digits, which people mistype for another
    return as_kept(float(text.replace(",", ".").replace("\u066b", ".")))


def as_kept(value: float) -> float:
    """Points rounded to the stored precision."""
    return rounded(float(value)) if math.isfinite(value) else value


# --- mark entries ----------------------------------------------------------------------------------------


Marks = Mapping[tuple[str, str], Marked]
"""(student, item or part) -> the last mark, which may withdraw an earlier one."""


@dataclass(frozen=True)
class Entry:
    """A checked mark that changes something.

    Attributes:
        place: Its sheet and row; empty if it does not come from a sheet.
        before: The mark that stands, and whose it is.
        sheet: The name of the sheet; empty if it does not come from one.
        texts: Id -> text of the comments that the student got so far.
        mate: Whether it was added for another member of the marked student's team.
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
        mark_before, who = mark_of(self.before), self.before.who if self.before else ""
        points_before = (
            f"{points(mark_before.points)} ({who})" if mark_before.points is not None else "no mark"
        )
        points_after = "no mark" if self.mark.points is None else points(self.mark.points)
        return f"{self.student_id} {self.target}: {points_before} -> {points_after}"


@dataclass(frozen=True)
class MarkNote:
    """Something that stays as it is, although a mark says otherwise.

    Attributes:
        place: The place of that mark; empty if it does not come from a sheet.
        sentence: What stays, and why.
    """

    place: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}" if self.place else self.sentence


def with_mates(
    entries: Mapping[tuple[str, str], Entry], marks: Marks, teams: Mapping[str, Sequence[str]]
) -> tuple[list[Entry], list[MarkNote]]:
    """The entries, and the same for members of a team who have neither an entry nor a mark of their own.

    Args:
        entries: By student and item or part.
        marks: The marks that stand.
        teams: Student -> all who handed in together.
    """
    all_entries, notes = dict(entries), []
    for (student_id, target), entry in entries.items():
        for mate in teams.get(student_id, ()):
            key, other = (mate, target), entries.get((mate, target))
            if other is not None and other.mark.points != entry.mark.points and mate > student_id:
                differ = (
                    f"{student_id} and {mate} handed in together, and have {in_words(entry.mark)} and "
                    f"{in_words(other.mark)} for '{target}'."
                )
                notes.append(MarkNote(f"{entry.place} and {other.place}", differ))
            if key in all_entries or mark_of(marks.get(key)) == entry.mark:
                continue
            own_mark = marks.get(key)
            if (
                own_mark is not None
                and own_mark.points is not None
                and mark_of(own_mark) != mark_of(entry.before)
            ):
                keeps = (
                    f"{mate}, of the same team as {student_id}, keeps {in_words(mark_of(own_mark))} for "
                    f"'{target}', which {own_mark.who} gave to {mate} alone."
                )
                notes.append(MarkNote(entry.place, keeps))
                continue
            all_entries[key] = replace(entry, student_id=mate, before=own_mark, mate=True)
    return list(all_entries.values()), notes


def in_words(mark: Mark) -> str:
    """A mark's points in words, or `none`."""
    return TAKEN_BACK[0] if mark.points is None else points(mark.points)


def edits_of(
    entries: Sequence[Entry], assignment: Assignment, *, who: str, when: datetime, why: str = ""
) -> list[Marked]:
    """The entries as edits for the gradebook, in their order.

    Args:
        who: The marker.
        why: The reason, if it is not in an entry's comment. The student reads it.
    """
    bank: dict[str, Remark] = {remark.id: remark for remark in assignment.remarks}
    edits = []
    for entry in entries:
        texts = dict(entry.texts)
        valued = _valued(entry, bank)
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
                # a withdrawn mark has no comment of its own
                comment=why if entry.mark.points is None else entry.mark.comment,
                remarks=remarks,
                sheet=entry.sheet,
                valued=valued,
                adjustment=_adjustment(entry, valued, assignment),
            )
        )
    return edits


def _valued(entry: Entry, bank: Mapping[str, Remark]) -> tuple[tuple[str, float], ...]:
    """Id -> points of the chosen comments that have points, or had some in the mark before."""
    values = dict(entry.before.valued) if entry.before is not None else {}
    values |= {remark_id: remark.points for remark_id, remark in bank.items() if remark.points is not None}
    return tuple((remark_id, values[remark_id]) for remark_id in entry.mark.remarks if remark_id in values)


def _adjustment(entry: Entry, valued: Sequence[tuple[str, float]], assignment: Assignment) -> float:
    """The points of a mark that its comments with points do not explain."""
    if entry.mark.points is None or not valued:
        return 0.0
    by_remarks = assignment.points_by_remarks(entry.target, (points for _, points in valued))
    return rounded(entry.mark.points - by_remarks)
