"""The forms in which heads decide what the queue asks: each is shown, tried out, and then recorded.

A form first leads to a preview: whose total changes, from what to what, with nothing recorded. Recording it
needs the preview that was seen; if others changed the class meanwhile, the new preview is shown instead. The
decisions themselves are those of the commands (`grader.decisions`), and this module never decides whether
one is allowed.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

from starlette.responses import Response

from grader.decisions import corrections, last_word, oral_checks, regrade_answers, undoing, upload_owner
from grader.decisions.decision_words import decision_text
from grader.decisions.mark_entries import MarkFault, points_in
from grader.domain.edit import Edit
from grader.domain.errors import UsageError
from grader.domain.formatting import listed
from grader.domain.oral_check import FLAGS, OralOutcome
from grader.marking.audit_log import add_entry
from grader.marking.desk import grading_assignment
from grader.reports.whole_class.oral_flags import oral_flags
from grader.reports.whole_class.similarity_record import previous_similarity
from grader.results.oral_sheets import write_oral_sheets
from grader.results.revision import Change, Revision
from grader.results.session import ClassSession
from grader.web.decision_kinds import (
    SEEN_BY_STAFF,
    STUDENT,
    STUDENTS,
    WHY,
    DecisionField,
    DecisionForm,
    sent_student,
    sent_students,
)
from grader.web.inquiry_forms import FLAG_WORDS, INQUIRY_FORMS
from grader.web.review_forms import REVIEW_FORMS
from grader.web.visits import SentFields, Visit

_MOST_SHOWN = 300  # totals in a preview; more are counted
_ANY_TIME = datetime.min
OUTCOME_WORDS = (
    (OralOutcome.PASSED.value, "passed: explained the work"),
    (OralOutcome.FAILED.value, "not passed: could not explain it"),
    (OralOutcome.ABSENT.value, "absent: did not come"),
    (OralOutcome.EXCUSED.value, "excused: is not asked after all"),
)


# --- the decisions ---------------------------------------------------------------------------------------


def _rule(session: ClassSession, form: SentFields, *, lift: bool) -> Revision:
    students = form.text("student").split()
    return last_word.rule(session, students, why=form.text("why"), lift=lift, allow_lower=True).revision


def _accept(session: ClassSession, form: SentFields) -> Revision:
    file = form.text("file").strip() or None
    return corrections.accept_file(session, sent_student(form), file, why=form.text("why"), allow_lower=True)


def _owner(session: ClassSession, form: SentFields) -> Revision:
    return upload_owner.decide_owner(
        session,
        form.text("upload").strip(),
        form.text("student").strip() or None,
        why=form.text("why"),
        replaces_current=bool(form.text("instead")),
        allow_lower=True,
    ).revision


def _waive(session: ClassSession, form: SentFields) -> Revision:
    check = form.text("check").strip()
    return corrections.waive_check(session, check, why=form.text("why"), allow_lower=True).revision


def _received(session: ClassSession, form: SentFields) -> Revision:
    student_id, moment, why = sent_student(form), form.text("moment").strip(), form.text("why")
    if moment == corrections.IN_TIME:
        return corrections.record_in_time(session, student_id, why=why, allow_lower=True).revision
    when = None if moment == corrections.NO_TIME else corrections.moment_in(moment)
    return corrections.record_received(session, student_id, when, why=why, allow_lower=True).revision


def _claim(session: ClassSession, form: SentFields) -> Revision:
    share = corrections.share_in(form.text("accuracy"))
    return corrections.record_claim(
        session, sent_student(form), share, why=form.text("why"), allow_lower=True
    )


def _run(session: ClassSession, form: SentFields) -> Revision:
    number = corrections.run_number_in(form.text("number").strip())
    student_id, why = sent_student(form), form.text("why")
    return corrections.choose_run(session, student_id, number, why=why, allow_lower=True).revision


def _answer(session: ClassSession, form: SentFields) -> Revision:
    student_id, item, points = sent_student(form), form.text("item").strip(), form.text("points").strip()
    open_items = [
        request.target
        for request in regrade_answers.unanswered(session.book.snapshot().edits)
        if request.student_id == student_id
    ]
    if not item and len(open_items) != 1:
        there = f"open requests about {listed(open_items)}" if open_items else "no open request"
        raise UsageError(f"'{student_id}' has {there}. Say which item the answer is about.")
    value = points_in(points) if points else None
    if isinstance(value, MarkFault) or (points and value is None):
        raise UsageError(f"'{points[:60]}' is no number. Leave the points empty to keep them.")
    answer = regrade_answers.NewAnswer(student_id, item or open_items[0], form.text("why"), value)
    return regrade_answers.answer_requests(session, [answer], allow_lower=True).revision


def _undo(session: ClassSession, form: SentFields) -> Revision:
    return undoing.undo(session, form.number("decision"), why=form.text("why"), allow_lower=True)


def _pick(session: ClassSession, form: SentFields) -> Revision:
    named = sent_students(form)
    share = form.text("share").strip().rstrip("%").strip()
    if not share and not named:
        raise UsageError("Say how many are to be drawn, as 15, or name students.")
    request = oral_checks.OralRequest(
        share=_share(share) if share else None,
        seed=form.text("seed").strip(),
        students=named,
        why=form.text("why") if named else "",
        without=frozenset(flag for flag in FLAGS if form.text(f"without-{flag.value}")),
    )
    similarity = previous_similarity(session.out, session.assignment.id)
    return oral_checks.pick_for_oral(
        session,
        request,
        lambda results: oral_flags(session.assignment, results, similarity),
        allow_lower=True,
    ).revision


def _share(text: str) -> float:
    """A share of the class that was typed in percent, as 0 to 1."""
    value = points_in(text)
    if not isinstance(value, float) or not 0 <= value <= 100:
        raise UsageError(f"'{text[:60]}' is not a share in percent. Write one, as 15.")
    if 0 < value < 1:
        raise UsageError(f"The share is in percent: {value:g} would be {value:g} %. Write {100 * value:g}.")
    return value / 100


def _outcome(session: ClassSession, form: SentFields) -> Revision:
    word = form.text("outcome")
    if word not in tuple(OralOutcome):
        raise UsageError("Choose how the check went.")
    return oral_checks.record_oral_outcome(
        session, sent_student(form), OralOutcome(word), why=form.text("why"), allow_lower=True
    )


def _write_sheets(session: ClassSession, revision: Revision) -> None:
    write_oral_sheets(session.assignment, session.book, revision.results, session.out)


FORMS = {
    form.id: form
    for form in (
        DecisionForm(
            "rule",
            "Give 0 points",
            "The total is 0 for what was handed in so far. A later attempt is graded as usual.",
            (STUDENTS, WHY),
            lambda session, form: _rule(session, form, lift=False),
            "The total is 0.",
        ),
        DecisionForm(
            "lift",
            "Let what there is count",
            "The total counts although something is missing. What could not be judged gives no points.",
            (STUDENTS, WHY),
            lambda session, form: _rule(session, form, lift=True),
            "What there is counts.",
        ),
        DecisionForm(
            "accept",
            "Accept a file as the report",
            "A file that was set aside counts as the report, and people mark it.",
            (
                STUDENT,
                DecisionField("file", "File", "Its name; empty: none counts any more.", may_be_empty=True),
                WHY,
            ),
            _accept,
            "The file was accepted.",
        ),
        DecisionForm(
            "owner",
            "Say whose it is",
            "Its points, marks and report are that student's from then on, also when it is graded again.",
            (
                DecisionField("upload", "Submission", "The id under which it is listed."),
                DecisionField("student", "Student", "The id; empty: nobody knows.", may_be_empty=True),
                DecisionField(
                    "instead", "It replaces the submission that the student already has", is_check=True
                ),
                WHY,
            ),
            _owner,
            "Whose it is was recorded.",
        ),
        DecisionForm(
            "waive",
            "Waive a check",
            "The check counts as passed for the whole class, also for later submissions.",
            (DecisionField("check", "Check"), WHY),
            _waive,
            "The check was waived.",
        ),
        DecisionForm(
            "received",
            "Say when it came",
            "It outweighs the time of the LMS for these files.",
            (
                STUDENT,
                DecisionField(
                    "moment",
                    "When",
                    f"As {corrections.EXAMPLE}; or {corrections.IN_TIME}; {corrections.NO_TIME} takes an "
                    "earlier entry back.",
                ),
                WHY,
            ),
            _received,
            "When it came was recorded.",
        ),
        DecisionForm(
            "claim",
            "Record the claimed accuracy",
            "What the report claims, where it could not be read or was misread.",
            (STUDENT, DecisionField("accuracy", "Accuracy", "In percent, as 83.5; or none."), WHY),
            _claim,
            "The claim was recorded.",
        ),
        DecisionForm(
            "run",
            "Choose which run counts",
            "It counts until the student hands in something new. Nothing runs again.",
            (
                STUDENT,
                DecisionField("number", "Run", f"Its number, or {corrections.LATEST_RUN}."),
                WHY,
            ),
            _run,
            "The run was chosen.",
        ),
        DecisionForm(
            "pick",
            "Pick students for an oral check",
            "It holds their grades until the outcome is recorded. Nobody who was picked is dropped, and no "
            "reason looks at points. Each gets a page of five questions about their own work.",
            (
                DecisionField(
                    "share",
                    "Share to draw",
                    "In percent of those with code, as 15. With it, everybody with a flag is picked.",
                    may_be_empty=True,
                ),
                DecisionField(
                    "seed",
                    "Seed of the first draw",
                    "Empty: the recorded one, or one that the gradebook gives.",
                    may_be_empty=True,
                ),
                *(
                    DecisionField(f"without-{flag.value}", f"Nobody for {words}", is_check=True)
                    for flag, words in FLAG_WORDS.items()
                ),
                DecisionField(
                    "students",
                    "Further students",
                    "Their ids, with spaces between them.",
                    may_be_empty=True,
                ),
                DecisionField(
                    "why", "Why these", "For further students; students never read it.", may_be_empty=True
                ),
            ),
            _pick,
            "The students were picked, and their questions are written.",
            page="oral",
            others="picked",
            after=_write_sheets,
        ),
        DecisionForm(
            "outcome",
            "Record the outcome of an oral check",
            "Passed and excused give the grade free. Not passed and absent take no points: the grade is held "
            "until a person rules.",
            (
                STUDENT,
                DecisionField("outcome", "Outcome", choices=OUTCOME_WORDS),
                SEEN_BY_STAFF,
            ),
            _outcome,
            "The outcome was recorded.",
            page="oral",
        ),
        DecisionForm(
            "regrade",
            "Score the class again",
            "By the rubric as it is now, from what was recorded: no student's code runs. To undo it, put the "
            "rubric back and score again.",
            (),
            lambda session, _: corrections.regrade(session, allow_lower=True).revision,
            "The class was scored again.",
        ),
        DecisionForm(
            "answer",
            "Answer a request",
            "The student reads the answer in the report. New points count for the whole team.",
            (
                STUDENT,
                DecisionField("item", "Item", "Empty: the one that is disputed.", may_be_empty=True),
                DecisionField("points", "Points", "Empty: they stay.", may_be_empty=True),
                DecisionField("why", "Answer", "In a sentence: the student reads it."),
            ),
            _answer,
            "The request was answered.",
        ),
        DecisionForm(
            "undo",
            "Take a decision back",
            "What was decided before it counts again. The decision stays in the record.",
            (DecisionField("decision", "Number of the decision"), WHY),
            _undo,
            "The decision was taken back.",
        ),
        *INQUIRY_FORMS,
        *REVIEW_FORMS,
    )
}


# --- pages -----------------------------------------------------------------------------------------------


def decision_page(visit: Visit) -> Response:
    """An empty form, or one with what the link to it says."""
    return _form_page(visit, _form_of(visit), visit.query)


def preview_page(visit: Visit) -> Response:
    """What would follow from a decision; nothing is recorded."""
    form = _form_of(visit)
    try:
        revision = _tried(visit, form)
    except UsageError as error:
        return _form_page(visit, form, visit.form, tuple(str(error).splitlines()))
    return _preview_page(visit, form, revision)


def record_decision(visit: Visit) -> Response:
    """Record a decision whose preview was seen, if it still has the same consequences."""
    form = _form_of(visit)
    seen, may_fall = visit.form.text("seen"), bool(visit.form.text("allow_lower"))

    def agrees(changes: Sequence[Change], entries: Sequence[Edit]) -> bool:
        return digest_of(changes, entries) == seen and (
            may_fall or not any(change.lowers for change in changes)
        )

    try:
        _require_filled(form, visit.form)
        revision = form.decide(replace(_session(visit), review=agrees), visit.form)
    except UsageError as error:
        return _form_page(visit, form, visit.form, tuple(str(error).splitlines()))
    if not revision.recorded:
        is_same = digest_of(revision.changes, revision.edits) == seen
        return _preview_page(
            visit,
            form,
            revision,
            status=409,
            fault="A grade that was released would fall. Allow that below, or decide otherwise."
            if is_same
            else "The class changed meanwhile. Nothing was recorded: this is what would follow now.",
        )
    said = [f"{field.name}={text}" for field in form.fields if (text := visit.form.text(field.name))]
    add_entry(visit.desk, visit.person, visit.now(), f"{form.title}: {', '.join(said)}"[:2000])
    form.after(_session(visit), revision)
    return visit.redirect(form.page, done=form.id, changed=str(len(revision.changes)))


def digest_of(changes: Sequence[Change], entries: Sequence[Edit]) -> str:
    """What a preview showed, so that nothing else is recorded."""
    words = [change.in_words for change in changes]
    words += [repr(replace(edit, when=_ANY_TIME)) for edit in entries]  # also which files it is about
    return sha256("\n".join(words).encode()).hexdigest()


def _form_of(visit: Visit) -> DecisionForm:
    form = FORMS.get(visit.path["kind"])
    if form is None:
        raise UsageError("There is no such decision. Go back to the queue.")
    return form


def _session(visit: Visit) -> ClassSession:
    desk = visit.desk
    assignment = grading_assignment(desk)
    return ClassSession(
        desk.out, desk.book, assignment, visit.person, visit.console.clock, followed=desk.followed
    )


def _tried(visit: Visit, form: DecisionForm) -> Revision:
    """What would follow.

    Raises:
        UsageError: The decision is not allowed, or a field is empty.
    """
    _require_filled(form, visit.form)
    return form.decide(replace(_session(visit), review=lambda *_: False), visit.form)


def _require_filled(form: DecisionForm, sent: SentFields) -> None:
    for field in form.fields:
        if not (field.is_check or field.may_be_empty or sent.text(field.name).strip()):
            raise UsageError(f"{field.label} is empty. Fill it in.")


def _form_page(
    visit: Visit, form: DecisionForm, values: SentFields, faults: tuple[str, ...] = ()
) -> Response:
    return visit.page(
        "decision.html.j2", 422 if faults else 200, form=form, values=values, faults=faults, preview=None
    )


def _preview_page(
    visit: Visit, form: DecisionForm, revision: Revision, *, status: int = 200, fault: str = ""
) -> Response:
    changes = sorted(revision.changes, key=lambda change: (not change.lowers, change.after.student_id))
    names = {one.evidence.student_id: one.evidence.origin.person for one in revision.results}
    return visit.page(
        "decision.html.j2",
        status,
        form=form,
        values=visit.form,
        faults=(fault,) if fault else (),
        preview=revision,
        changes=changes[:_MOST_SHOWN],
        more=max(len(changes) - _MOST_SHOWN, 0),
        lowers=sum(change.lowers for change in changes),
        names=names,
        entries=[
            (edit.student_id or "", decision_text(edit, {})[1])
            for edit in (revision.edits if form.others else ())
        ],
        seen=digest_of(revision.changes, revision.edits),
    )
