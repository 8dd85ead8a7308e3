"""The forms in which heads ask a student about the work, and say what follows from the answer.

What may be asked and decided is for `grader.decisions.asking_students` to say.
"""

from grader.decisions import asking_students
from grader.decisions.mark_entries import MarkFault, points_in
from grader.domain.errors import UsageError
from grader.domain.formatting import counted
from grader.domain.inquiry import InquiryOutcome
from grader.domain.oral_check import FLAGS, OralReason
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring.inquiries import inquiries
from grader.web.decision_kinds import STUDENT, DecisionField, DecisionForm, sent_student
from grader.web.visits import SentFields

FLAG_WORDS = {
    OralReason.SIMILAR: "similar submissions",
    OralReason.CLAIM: "a claim or outputs that are not those of the code",
    OralReason.WEIGHTS: "weights that do not fit the model",
    OralReason.MODEL: "a trained model that may be another one",
    OralReason.STUDY: "a study whose rows do not differ as claimed",
    OralReason.CODE: "unusual code",
    OralReason.WATCH: "a disturbed watch for forbidden parts",
}
_OUTCOMES = (
    (InquiryOutcome.DISMISSED.value, "nothing follows"),
    (InquiryOutcome.CONFIRMED.value, "confirmed: it is as suspected"),
    ("none", "take the decision back"),
)


def _inquire(session: ClassSession, form: SentFields) -> Revision:
    about = form.text("about")
    if about not in tuple(OralReason):
        raise UsageError("Choose what the question is about.")
    question = asking_students.NewInquiry(
        sent_student(form), OralReason(about), form.text("line"), form.text("question")
    )
    return asking_students.ask_student(session, question)


def _settle(session: ClassSession, form: SentFields) -> Revision:
    word, points = form.text("outcome"), form.text("points").strip()
    if word not in {value for value, _ in _OUTCOMES}:
        raise UsageError("Choose what follows.")
    value = points_in(points) if points else None
    if isinstance(value, MarkFault) or (points and value is None):
        raise UsageError(f"'{points[:60]}' is no number. Leave the points empty to keep them.")
    settlement = asking_students.Settlement(
        sent_student(form),
        _number(session, form),
        None if word == "none" else InquiryOutcome(word),
        form.text("why"),
        form.text("item").strip(),
        value,
        unanswered=bool(form.text("unanswered")),
    )
    return asking_students.settle_inquiry(session, settlement, allow_lower=True)


def _number(session: ClassSession, form: SentFields) -> int:
    """The number of a question that was typed, or that of the only open one."""
    text, student_id = form.text("number").strip(), sent_student(form)
    if (number := form.whole("number")) is not None:
        return number
    if text:
        raise UsageError(f"'{text[:60]}' is no number of a question. The student's first has 1.")
    session.require_student(student_id)
    numbers = [one.number for one in inquiries(session.book.edits(student_id)) if one.is_open]
    if len(numbers) != 1:
        raise UsageError(f"'{student_id}' has {counted(len(numbers), 'open question')}. Say which one.")
    return numbers[0]


INQUIRY_FORMS = (
    DecisionForm(
        "inquire",
        "Ask the student about it",
        "The student reads the question with the line in the report, once that is published, and can answer. "
        "It takes no points and names nobody else.",
        (
            STUDENT,
            DecisionField("about", "About", choices=tuple((flag.value, FLAG_WORDS[flag]) for flag in FLAGS)),
            DecisionField(
                "line",
                "Line",
                f"As {asking_students.EXAMPLE}. Empty for what is not in the code.",
                may_be_empty=True,
            ),
            DecisionField(
                "question", "Question", "The student reads it. Empty: the usual question.", may_be_empty=True
            ),
        ),
        _inquire,
        "The student is asked. Publish the report again, so that it is read.",
    ),
    DecisionForm(
        "settle",
        "Say what follows from a question",
        "Only what you confirm may change points, and of this student alone. They stay if you take it back: "
        "mark the item again then.",
        (
            STUDENT,
            DecisionField(
                "number", "Number of the question", "Empty: the one that is open.", may_be_empty=True
            ),
            DecisionField("outcome", "What follows", choices=_OUTCOMES),
            DecisionField("item", "Item", "Whose points change; empty: none.", may_be_empty=True),
            DecisionField("points", "Points", "Its new points; empty: they stay.", may_be_empty=True),
            DecisionField("unanswered", "Decide although the student has not answered", is_check=True),
            DecisionField("why", "Why", "In a sentence: the student reads it."),
        ),
        _settle,
        "What follows was recorded.",
    ),
)
