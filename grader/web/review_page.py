"""The page of reviews, for heads: how far each grade is, by section.

Reviewing and taking it back are forms of `review_forms`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from grader.course.locate import located_course
from grader.course.term_files import term_people
from grader.decisions.decision_words import review_state
from grader.domain.errors import GraderError
from grader.domain.grade_review import GradeState
from grader.domain.score import Score
from grader.scoring.grade_state import grade_state, is_reviewed, what_is_open
from grader.web.queue_page import class_now
from grader.web.review_forms import REVIEW_FORMS
from grader.web.visits import Visit


@dataclass(frozen=True)
class _SectionStates:
    """How far the grades of a section are.

    Attributes:
        name: Empty: without a section.
        counts: Of each state.
        rows: (student, the name that the LMS has, state in a clause, the form that changes it; empty: none).
    """

    name: str
    counts: Mapping[GradeState, int]
    rows: Sequence[tuple[str, str, str, str]]


def review_page(visit: Visit) -> Response:
    """How far each grade is, by section."""
    overview = class_now(visit.desk)
    sections, problem = _sections(visit, {score.student_id for _, score in overview.results})
    names = {score.student_id: evidence.origin.person for evidence, score in overview.results}
    by_section: dict[str, list[Score]] = {}
    for _, score in overview.results:
        if not score.held:
            by_section.setdefault(sections.get(score.student_id, ""), []).append(score)
    return visit.page(
        "review.html.j2",
        assignment=overview.assignment,
        sections=[
            _section(name, by_section[name], names)
            for name in sorted(by_section, key=lambda one: (not one, one))
        ],
        problem=problem,
        states=tuple(GradeState),
        forms={form.id: form for form in REVIEW_FORMS},
        done=next((form for form in REVIEW_FORMS if form.id == visit.query.text("done")), None),
    )


def _section(name: str, scores: Sequence[Score], names: Mapping[str, str]) -> _SectionStates:
    states = {score.student_id: grade_state(score) for score in scores}
    counts = {state: sum(one is state for one in states.values()) for state in GradeState}
    rows = [
        (score.student_id, names.get(score.student_id, ""), review_state(score), _form(score))
        for score in scores
    ]
    return _SectionStates(name, counts, rows)


def _form(score: Score) -> str:
    """The form that changes whether a grade is reviewed; empty while something is open."""
    if is_reviewed(score):
        return "unreview"
    return "" if what_is_open(score) else "review"


def _sections(visit: Visit, known: Collection[str]) -> tuple[Mapping[str, str], str]:
    """(student -> section, why the course's list of students cannot be read)."""
    try:
        plan = located_course(working=visit.desk.assignment.folder, environment={}).plan
        return term_people(plan, known).sections or {}, ""
    except GraderError as error:
        return {}, str(error)
