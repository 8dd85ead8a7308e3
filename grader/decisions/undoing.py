"""Takes decisions back: each by a new entry that says again what was decided before it.

Nothing is removed from the gradebook. A decision can be taken back while no later one is about the same
thing; taking back a taking-back is possible as well. Marks are not among these decisions: whoever marks
takes them back. It never scores: the revision of the class does.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from grader.decisions.corrections import stated
from grader.decisions.decision_words import decision_text
from grader.domain.edit import (
    Accepted,
    Claimed,
    Edit,
    InTime,
    OrallyChecked,
    OwnerAssigned,
    Received,
    Ruled,
    RunChosen,
    Waived,
)
from grader.domain.errors import UsageError
from grader.gradebook import Gradebook, Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession

_KINDS: tuple[type[Edit], ...] = (
    Accepted,
    Claimed,
    InTime,
    OrallyChecked,
    OwnerAssigned,
    Received,
    Ruled,
    RunChosen,
    Waived,
)


@dataclass(frozen=True)
class PersonDecision:
    """A decision of a person.

    Attributes:
        number: Of its record in the gradebook.
        edit: About a row of the gradebook, or the whole class.
        student_id: Whom it is about now; empty: the whole class, or a submission that no longer counts.
        text: What was decided, in a few words.
        is_last: Whether no later decision is about the same thing, so that it can be taken back.
    """

    number: int
    edit: Edit
    student_id: str
    text: str
    is_last: bool


def person_decisions(book: Gradebook) -> tuple[PersonDecision, ...]:
    """What people decided, without marks; the newest first."""
    with book.marking() as records:
        decisions = records.rows.decisions(_KINDS)
        ids_now = records.rows.ids_now()
    last = {_subject(edit): number for number, edit in decisions}
    return tuple(
        PersonDecision(
            number=number,
            edit=edit,
            student_id=(ids_now.id_of(edit.student_id) or "") if edit.student_id is not None else "",
            text=": ".join(decision_text(edit, {})),
            is_last=last[_subject(edit)] == number,
        )
        for number, edit in reversed(decisions)
        if _is_by_person(edit)
    )


def undo(session: ClassSession, number: int, *, why: str, allow_lower: bool = False) -> Revision:
    """Take a decision back, so that what was decided before it counts again.

    Args:
        number: Of the decision: see `person_decisions`.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such decision or reason, a later one is about the same thing, or a released
            grade would fall.
    """
    reason = stated(why)

    def decide(snapshot: Snapshot, _: object) -> Sequence[Edit]:
        with session.book.marking() as records:
            decisions = records.rows.decisions(_KINDS)
        found = next((edit for one, edit in decisions if one == number and _is_by_person(edit)), None)
        if found is None:
            raise UsageError("There is no such decision. Choose one of the list.")
        if any(one > number and _subject(edit) == _subject(found) for one, edit in decisions):
            raise UsageError("Something later was decided about the same thing. Take that back first.")
        taken_back = [(number, found), *_companions(decisions, number, found)]
        restored = []
        for one, edit in taken_back:
            earlier = [before for at, before in decisions if at < one and _subject(before) == _subject(edit)]
            again = replace(
                _restored(edit, earlier[-1] if earlier else None),
                who=session.who,
                when=session.clock(),
                why=reason,
                run=None,
            )
            restored.append(_about_current(again, snapshot))
        return restored

    return session.revised("undo", decide=decide, allow_lower=allow_lower)


def _is_by_person(edit: Edit) -> bool:
    match edit:
        case RunChosen(because=because):
            return because is None
        case OwnerAssigned(by_person=by_person):
            return by_person
    return True


def _subject(edit: Edit) -> Hashable:
    """What a decision is about: of several about the same, the last one counts."""
    match edit:
        case Waived(check=check):
            return Waived, check
        case Ruled(digest=digest):
            return Ruled, edit.student_id, digest
        case OrallyChecked(digest=digest):
            return OrallyChecked, edit.student_id, digest
        case Received(digest=digest) | InTime(digest=digest):
            return Received, edit.student_id, digest
    return type(edit), edit.student_id


def _companions(
    decisions: Sequence[tuple[int, Edit]], number: int, decision: Edit
) -> list[tuple[int, OwnerAssigned]]:
    """What the grader noted of another submission because of a decision on whose one is."""
    if not isinstance(decision, OwnerAssigned):
        return []
    return [
        (one, edit)
        for one, edit in decisions
        if one == number + 1
        and isinstance(edit, OwnerAssigned)
        and not edit.by_person
        and (edit.who, edit.when) == (decision.who, decision.when)
    ]


def _restored(edit: Edit, before: Edit | None) -> Edit:
    """The edit that makes count again what counted before another one.

    Args:
        before: The decision before it on the same thing; None: there was none.
    """
    if isinstance(before, OwnerAssigned):
        return replace(before, by_person=True)  # else the person's decision would go on counting
    if before is not None:
        return before
    match edit:
        case Waived():
            return replace(edit, lifted=True)
        case Ruled():
            return replace(edit, withdrawn=True)
        case Claimed():
            return replace(edit, accuracy=None)
        case OrallyChecked():
            return replace(edit, outcome=None)
        case Received():
            return replace(edit, moment=None)
        case InTime(digest=digest):
            return Received(
                who=edit.who, when=edit.when, why="", student_id=edit.student_id, digest=digest, moment=None
            )
        case Accepted():
            return replace(edit, file=None)
        case RunChosen(run=run):  # the latest at the time counted
            return replace(edit, number=run)
        case OwnerAssigned(student_id=str(row)):
            return replace(edit, listed_as=row, held=False)
    raise AssertionError(f"a decision that nobody can take back: {type(edit).__name__}")


def _about_current(edit: Edit, snapshot: Snapshot) -> Edit:
    """An edit about a row as one about the student's current id, as the gradebook takes it.

    Raises:
        UsageError: Another submission counts for that student now.
    """
    updated = edit if isinstance(edit, OwnerAssigned) else snapshot.ids_now.updated(edit)
    if updated is None:
        raise UsageError("Another submission of the student counts now. Decide about that one instead.")
    return updated
