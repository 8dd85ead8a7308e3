"""The queue of what needs a person, to be worked off in the page, and what was decided so far.

It shows ids and names, so it is for heads. What belongs into the queue is decided by `grader.reports`, and
each decision is taken in a form of its own (`decision_forms`).
"""

from starlette.responses import Response

from grader.decisions.undoing import person_decisions
from grader.domain.oral_check import OralReason
from grader.marking.audit_log import add_entry
from grader.marking.desk import Desk, UnknownTask, assignment_now, handle_of
from grader.reports.whole_class import review_cases as causes
from grader.reports.whole_class.class_overview import Overview
from grader.web.decision_forms import FORMS
from grader.web.visits import Visit

_MOST_DECISIONS = 50  # that the page lists

# cause -> the forms that settle it for the students of a row; the others are about single checks, or are
# marked as questions
_FORMS_BY_CAUSE = {
    causes.REFUSED.id: ("rule", "lift"),
    causes.MISSING.id: ("rule", "lift", "accept"),
    causes.LACKING.id: ("rule",),
    causes.NOTHING.id: ("rule",),
    causes.LATE_ASKED.id: ("received",),
    causes.LATE.id: ("received",),
    causes.LATE_UNKNOWN.id: ("received",),
    causes.FALLEN.id: ("run",),
    causes.LOWER.id: ("run",),
    causes.CLAIM.id: ("claim", "inquire"),
    causes.NOTES.id: ("inquire",),
    causes.WEIGHTS.id: ("inquire",),
    causes.SIMILAR.id: ("inquire",),
    causes.INQUIRIES.id: ("settle",),
    causes.OWNER.id: ("owner",),
    causes.ORAL.id: ("outcome", "rule", "lift"),
    causes.REQUESTS.id: ("answer",),
}
# cause -> what a question about it is about
_SUSPICIONS = {
    causes.CLAIM.id: OralReason.CLAIM.value,
    causes.NOTES.id: OralReason.CODE.value,
    causes.WEIGHTS.id: OralReason.WEIGHTS.value,
    causes.SIMILAR.id: OralReason.SIMILAR.value,
}
_FORMS_OF_STUDENT = ("rule", "lift", "accept", "received", "claim", "run", "inquire", "settle")
_RUN_AGAIN = frozenset((causes.ENGINE.id, causes.RESUBMISSION.id, causes.CHECKS.id))
_MOST_NAMED = 20  # students in an address; of more, all are graded again
_MARKED_CAUSES = frozenset((causes.MARKS.id, causes.UNDECIDED.id, causes.DISTURBED.id))
_FOR_SEVERAL = frozenset(("rule", "lift"))


def class_now(desk: Desk) -> Overview:
    """The class at a glance.

    Raises:
        UsageError: The gradebook cannot be used.
    """
    return desk.followed.overview(assignment_now(desk))


def queue_page(visit: Visit) -> Response:
    """What needs a person, by reason; the forms to decide it; the decisions so far."""
    overview = class_now(visit.desk)
    decisions = person_decisions(visit.desk.book)
    done = FORMS.get(visit.query.text("done"))
    return visit.page(
        "queue.html.j2",
        overview=overview,
        names=names_in(overview),
        forms=FORMS,
        forms_by_cause=_FORMS_BY_CAUSE,
        suspicions=_SUSPICIONS,
        marked_causes=_MARKED_CAUSES,
        run_again={
            section.cause.id: " ".join(students) if len(students) <= _MOST_NAMED else ""
            for section in overview.queue
            if section.cause.id in _RUN_AGAIN
            for students in [list(dict.fromkeys(one for row in section.rows for one in row.students))]
        },
        for_several=_FOR_SEVERAL,
        checks={
            causes.CHECKS.id: [rate for rate in overview.rates if rate.errored and not rate.waived],
            causes.SUSPECT.id: [rate for rate in overview.rates if rate.suspect],
        },
        decisions=decisions[:_MOST_DECISIONS],
        more=max(len(decisions) - _MOST_DECISIONS, 0),
        done=done,
        changed=visit.query.whole("changed") or 0,
    )


def student_page(visit: Visit) -> Response:
    """One student: points, what is odd, and every form about them. That it was opened is recorded."""
    student_id, overview = visit.path["student"], class_now(visit.desk)
    found = next((pair for pair in overview.results if pair[1].student_id == student_id), None)
    if found is None:
        raise UnknownTask(f"The gradebook lists no '{student_id}'. Go back to the queue.")
    evidence, score = found
    try:
        handle = handle_of(visit.desk, student_id)
    except UnknownTask:
        handle = ""  # nothing of it is marked by people
    add_entry(visit.desk, visit.person, visit.now(), f"opened the page of {student_id}", handle=handle)
    return visit.page(
        "student_queue.html.j2",
        evidence=evidence,
        score=score,
        handle=handle,
        cases=overview.own_cases[student_id],
        runs=visit.desk.book.run_records(student_id),
        decisions=[one for one in person_decisions(visit.desk.book) if one.student_id == student_id],
        forms=[
            FORMS[one] for one in ("rule", "lift", "accept", "received", "claim", "run", "inquire", "settle")
        ],
        owner=FORMS["owner"],
    )


def names_in(overview: Overview) -> dict[str, str]:
    """Student -> the name that the LMS knows."""
    return {
        score.student_id: evidence.origin.person
        for evidence, score in overview.results
        if evidence.origin.person
    }
