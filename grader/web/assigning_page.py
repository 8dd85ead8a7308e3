"""The page on which heads say who marks what: by question, share, section or list, and who marks twice.

It reads the forms. Who gets which submission, and how well two marks agree, is decided in
`grader.marking.allocation` and `grader.marking.second_marking`. People are those who have a link.
"""

import re
from collections.abc import Callable

from starlette.responses import Response

from grader.course.locate import located_course
from grader.course.term_files import term_people
from grader.domain.errors import GraderError, UsageError
from grader.marking import allocation
from grader.marking.marker_progress import marker_progress
from grader.marking.second_marking import agreement, choose_second
from grader.web.marking_pages import question_of
from grader.web.visits import SentFields, Visit

_LONGEST_SHOWN = 60  # characters of what somebody typed, in a sentence about it


def assigning_page(visit: Visit) -> Response:
    """Who has what of a question, the forms that change it, and how well second marks agree."""
    return _page(visit)


def assign(visit: Visit) -> Response:
    """Assign submissions as a form says."""
    target = visit.path["target"]
    question_of(visit, target)
    assigned = _WAYS.get(visit.path["way"])
    if assigned is None:
        raise UsageError("There is no such way to assign. Go back to the question.")
    try:
        count = assigned(visit, target)
    except UsageError as error:
        return _page(visit, status=422, faults=tuple(str(error).splitlines()))
    return visit.redirect("assign", target, done=visit.path["way"], count=str(count))


def _page(visit: Visit, *, status: int = 200, faults: tuple[str, ...] = ()) -> Response:
    target = visit.path["target"]
    sections, markers, problem = _sections_of_course(visit)
    return visit.page(
        "assigning.html.j2",
        status,
        question=question_of(visit, target),
        people=people(visit),
        progress=[one for one in marker_progress(visit.desk, target=target) if one.assigned or one.marked],
        agreement=agreement(visit.desk, target),
        faults=faults,
        sent=visit.form,
        sections=visit.form.text("sections") or sections,
        markers=visit.form.text("markers") or markers,
        section_problem=problem,
        done=visit.query.text("done"),
        count=visit.query.whole("count") or 0,
    )


def _sections_of_course(visit: Visit) -> tuple[str, str, str]:
    """(a line for each student and section, one for each section and marker, why there are none).

    Of those whom the course names, only people with a link to the console can mark.
    """
    try:
        plan = located_course(working=visit.desk.assignment.folder, environment={}).plan
        sections = term_people(plan, visit.desk.book.students()).sections or {}
    except GraderError as error:
        return "", "", str(error)
    known = people(visit)
    return (
        "\n".join(f"{student_id}, {section}" for student_id, section in sections.items() if section),
        "\n".join(
            f"{section.name}, {marker}"
            for section in plan.sections
            for marker in section.markers
            if marker in known
        ),
        "",
    )


def people(visit: Visit) -> list[str]:
    """Those to whom something can be assigned."""
    invited = [one.person for one in visit.console.access.people()]
    return sorted({*invited, visit.person})


# --- ways to assign --------------------------------------------------------------------------------------


def _only_unmarked(form: SentFields) -> bool:
    return not form.text("marked_too")


def _by_question(visit: Visit, target: str) -> int:
    marker = _person(visit, visit.form.text("marker"), or_nobody=True)
    unmarked = _only_unmarked(visit.form)
    return allocation.assign_question(
        visit.desk, target, marker, visit.now(), by=visit.person, only_unmarked=unmarked
    )


def _by_shares(visit: Visit, target: str) -> int:
    weights: dict[str, float] = {}
    for marker, text in zip(visit.form.texts("marker"), visit.form.texts("weight"), strict=False):
        if not text.strip():
            continue
        try:
            weights[_person(visit, marker)] = float(text.replace(",", "."))
        except ValueError:
            raise UsageError(
                f"'{_shown(text)}' is not a number. Write how large {marker}'s share is."
            ) from None
    counts = allocation.assign_shares(
        visit.desk,
        target,
        weights,
        visit.now(),
        by=visit.person,
        only_unmarked=_only_unmarked(visit.form),
    )
    return sum(counts.values())


def _by_sections(visit: Visit, target: str) -> int:
    sections = dict(_pairs(visit.form.text("sections"), "a student's id and a section"))
    markers: dict[str, list[str]] = {}
    for section, marker in _pairs(visit.form.text("markers"), "a section and who marks it"):
        markers.setdefault(section, []).append(_person(visit, marker))
    if not markers:
        raise UsageError("Say who marks which section, one in a line.")
    counts = allocation.assign_sections(
        visit.desk,
        target,
        sections,
        markers,
        visit.now(),
        by=visit.person,
        only_unmarked=_only_unmarked(visit.form),
    )
    return sum(counts.values())


def _by_list(visit: Visit, target: str) -> int:
    students = re.split(r"[\s,;]+", visit.form.text("students").strip())
    if not any(students):
        raise UsageError("Give the ids of the students, one in a line.")
    marker = _person(visit, visit.form.text("marker"), or_nobody=True)
    return allocation.assign_list(visit.desk, target, students, marker, visit.now(), by=visit.person)


def _second(visit: Visit, target: str) -> int:
    text = visit.form.text("share").strip().rstrip("%")
    try:
        share = float(text.replace(",", ".")) / 100
    except ValueError:
        raise UsageError(f"'{_shown(text)}' is not a share in percent. Write one, as 15.") from None
    markers = [_person(visit, marker) for marker in visit.form.texts("marker")]
    return choose_second(visit.desk, target, share, markers, visit.now(), by=visit.person)


_WAYS: dict[str, Callable[[Visit, str], int]] = {
    "question": _by_question,
    "shares": _by_shares,
    "sections": _by_sections,
    "list": _by_list,
    "second": _second,
}


def _person(visit: Visit, name: str, *, or_nobody: bool = False) -> str:
    if name in people(visit) or (or_nobody and not name):
        return name
    raise UsageError(f"Nobody called '{_shown(name)}' has a link to this console. Invite them first.")


def _pairs(text: str, what: str) -> list[tuple[str, str]]:
    """The two entries of each line, with a comma, a semicolon or spaces between them.

    Raises:
        UsageError: A line has something else.
    """
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        entries = [entry for entry in re.split(r"\s*[,;\t]\s*|\s+", line.strip()) if entry]
        if not entries:
            continue
        if len(entries) != 2:
            raise UsageError(f"Line {number}, '{_shown(line)}', is not {what}. Correct it.")
        pairs.append((entries[0], entries[1]))
    return pairs


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
