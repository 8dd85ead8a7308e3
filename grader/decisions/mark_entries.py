"""Marks that say something new, whoever they reach of a team, and what becomes of them in the gradebook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from grader.decisions.mark_checks import TAKEN_BACK
from grader.decisions.mark_row import Mark, mark_of
from grader.domain.assignment import Assignment, Remark
from grader.domain.edit import Marked
from grader.domain.formatting import points

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
