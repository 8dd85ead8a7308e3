"""The questions that a student was asked about the work, each with what came of it. It changes no points."""

from collections.abc import Iterable
from dataclasses import replace

from grader.domain.edit import Edit, InquiryAsked, InquiryExplained, InquirySettled
from grader.domain.inquiry import Inquiry


def inquiries(edits: Iterable[Edit]) -> tuple[Inquiry, ...]:
    """A student's questions, in the order in which they were asked.

    The last answer and the last decision about each count; a decision that was taken back opens it again.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    made: list[Inquiry] = []
    for edit in edits:
        match edit:
            case InquiryAsked():
                made.append(Inquiry(len(made) + 1, edit.about, edit.why, edit.place, edit.quoted, edit.when))
            case InquiryExplained(number=number) if 0 < number <= len(made):
                made[number - 1] = replace(made[number - 1], explanation=edit.why, explained=edit.explained)
            case InquirySettled(number=number) if 0 < number <= len(made):
                made[number - 1] = _settled(made[number - 1], edit)
    return tuple(made)


def _settled(inquiry: Inquiry, edit: InquirySettled) -> Inquiry:
    if edit.outcome is None:
        return replace(inquiry, outcome=None, reason="", settled=None, target="", before=None, after=None)
    return replace(
        inquiry,
        outcome=edit.outcome,
        reason=edit.why,
        settled=edit.when,
        target=edit.target,
        before=edit.before,
        after=edit.points,
    )
