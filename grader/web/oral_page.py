"""The page of oral checks, for heads: who was picked and why, what they are asked, and how it went.

Picking and outcomes are forms of `decision_forms`. Who can be picked is decided in
`grader.decisions.oral_checks`, and what is asked in `grader.reports.oral`.
"""

from dataclasses import dataclass

from starlette.responses import Response

from grader.decisions.decision_words import oral_state
from grader.decisions.oral_checks import last_draw
from grader.decisions.undoing import person_decisions
from grader.domain.edit import OrallyChecked
from grader.domain.oral_check import OralCheck
from grader.domain.submission_result import Result
from grader.marking.audit_log import add_entry
from grader.marking.desk import UnknownTask
from grader.reports.oral.question_sheet import OralSheet, notes_page, question_page
from grader.results.oral_sheets import sheet_of
from grader.web.decision_forms import FORMS
from grader.web.queue_page import class_now
from grader.web.report_files import report_page
from grader.web.visits import Visit


@dataclass(frozen=True)
class _ListedCheck:
    """A student who was picked.

    Attributes:
        name: As the LMS has it; empty: unknown.
        state: What became of the check, in a clause.
        undo: The number of the decision that can be taken back; None: there is none.
    """

    student_id: str
    name: str
    check: OralCheck
    state: str
    undo: int | None


def oral_page(visit: Visit) -> Response:
    """Who was picked, who is to be asked or ruled on first."""
    overview = class_now(visit.desk)
    undoable = {
        one.student_id: one.number
        for one in reversed(person_decisions(visit.desk.book))
        if one.is_last and isinstance(one.edit, OrallyChecked) and one.edit.outcome is not None
    }
    checks = [
        _ListedCheck(
            score.student_id,
            evidence.origin.person,
            score.oral,
            oral_state(score.oral),
            undoable.get(score.student_id) if score.oral.outcome is not None else None,
        )
        for evidence, score in overview.results
        if score.oral is not None
    ]
    checks.sort(key=lambda one: (not one.check.holds, not one.check.to_be_asked, one.student_id))
    return visit.page(
        "oral.html.j2",
        assignment=overview.assignment,
        checks=checks,
        asked=sum(one.check.to_be_asked for one in checks),
        ruled=sum(one.check.to_be_ruled for one in checks),
        draw=last_draw(visit.desk.book.edits()) if checks else None,
        compared=overview.similarity is not None,
        forms=FORMS,
        done=FORMS.get(visit.query.text("done")),
    )


def sheets_of_all(visit: Visit) -> Response:
    """The questions of all who are to be asked, or the notes on them, to be printed."""
    overview, kind = class_now(visit.desk), visit.path["kind"]
    sheets = [
        sheet_of(overview.assignment, visit.desk.book, Result(evidence, score), score.oral)
        for evidence, score in overview.results
        if score.oral is not None and score.oral.to_be_asked
    ]
    return _sheets(visit, kind, sheets, "all who are to be asked")


def sheet_of_student(visit: Visit) -> Response:
    """The questions of one student who was picked, or the notes on them."""
    overview, student_id = class_now(visit.desk), visit.path["student"]
    found = next((pair for pair in overview.results if pair[1].student_id == student_id), None)
    if found is None or found[1].oral is None:
        raise UnknownTask(f"'{student_id}' was not picked for an oral check. Go back to the oral checks.")
    sheet = sheet_of(overview.assignment, visit.desk.book, Result(*found), found[1].oral)
    return _sheets(visit, visit.path["kind"], [sheet], student_id)


def _sheets(visit: Visit, kind: str, sheets: list[OralSheet], whose: str) -> Response:
    if kind not in _SHEETS:
        raise UnknownTask("There are questions and notes. Go back to the oral checks.")
    assignment = class_now(visit.desk).assignment
    add_entry(visit.desk, visit.person, visit.now(), f"opened the {kind} of oral checks: {whose}")
    return report_page(_SHEETS[kind](assignment, sheets).encode("utf-8"))


_SHEETS = {"questions": question_page, "notes": notes_page}
