"""The forms in which heads record that they have looked over grades, and take that back.

What may be reviewed is decided in `grader.decisions.reviewing`.
"""

from grader.course.locate import located_course
from grader.course.term_files import section_students
from grader.decisions import reviewing
from grader.domain.errors import UsageError
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.web.decision_kinds import SEEN_BY_STAFF, DecisionField, DecisionForm, sent_students
from grader.web.visits import SentFields

_WHOSE = (
    DecisionField("students", "Students", "Their ids, with spaces between them.", may_be_empty=True),
    DecisionField("section", "Or a section", "Both empty: the whole class.", may_be_empty=True),
)


def _whose(session: ClassSession, form: SentFields) -> frozenset[str] | None:
    """The students whom a form names; None: everybody.

    Raises:
        UsageError: It names students and a section, or there are none such.
    """
    named, section = sent_students(form), form.text("section").strip()
    if named and section:
        raise UsageError("Students and a section both say whose grades it is about. Leave one empty.")
    if section:
        plan = located_course(working=session.assignment.folder, environment={}).plan
        return section_students(plan, section, session.book.students())
    for student_id in named:
        session.require_student(student_id)
    return frozenset(named) if named else None


def _review(session: ClassSession, form: SentFields) -> Revision:
    students = _whose(session, form)
    return reviewing.review_grades(
        session, students, note=form.text("note"), all_of_them=bool(sent_students(form))
    ).revision


def _withdraw(session: ClassSession, form: SentFields) -> Revision:
    return reviewing.withdraw_reviews(session, _whose(session, form), why=form.text("why"))


REVIEW_FORMS = (
    DecisionForm(
        "review",
        "Record a review",
        "You have looked over these grades as they are now. Of a section or the class, those of which "
        "something is open are left out. It changes no points.",
        (
            *_WHOSE,
            DecisionField("note", "Note", "Colleagues read it, students never.", may_be_empty=True),
        ),
        _review,
        "The review was recorded.",
        page="review",
        others="reviewed",
    ),
    DecisionForm(
        "unreview",
        "Take reviews back",
        "The grades count as not reviewed. The review stays in the record.",
        (*_WHOSE, SEEN_BY_STAFF),
        _withdraw,
        "The reviews were taken back.",
        page="review",
        others="taken back",
    ),
)
