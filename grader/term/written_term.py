"""The totals of a term as people and LMSs get them: a page, a table, and a filled LMS file.

It reads what the course and the results folders say, and writes into one folder. The gradebooks note the
folder, so that `grader forget` finds it. Whose total lacks something gets no grade in an LMS's file.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from grader.course.term_files import term_people
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import counted, stamp
from grader.domain.grade_review import GradeState
from grader.domain.score import Score
from grader.domain.term_total import TermPlan, TermTotal
from grader.files import atomic
from grader.lms.export_format import Choices, Export, ExportData, ExportFormat, Grade
from grader.lms.matching import Candidate, candidates
from grader.publishing.exporting import require_untouched
from grader.publishing.releases import grade_of
from grader.reports.whole_class.term_page import (
    SectionTotals,
    TermColumn,
    by_section,
    missing_words,
    term_csv,
    term_page,
)
from grader.results.class_files import report_path
from grader.results.folder_use import EXPORT, make_noted_folder
from grader.scoring.grade_state import grade_state
from grader.term.course_totals import AssignmentResults, course_totals, remarks
from grader.term.graded_assignments import GradedAssignment, OpenTerm, TermRequest, open_term

PAGE, TABLE = "index.html", "totals.csv"
ELSEWHERE = "Give another place with --to."


@dataclass(frozen=True)
class TermExport:
    """An LMS's file to fill.

    Attributes:
        into: The file that the LMS made; None: the format makes one.
    """

    format: ExportFormat
    into: Path | None
    choices: Choices


@dataclass(frozen=True)
class TermResult:
    """The totals of a course.

    Attributes:
        title: The course's.
        late_days: Of each student for the whole course; 0: it has none.
        totals: Of everybody, or of one section; sorted by student.
        remarks: Sentences that concern no single student.
        written: The files that were written.
        export: What an LMS's file got; None if none was asked for.
    """

    title: str
    plan: TermPlan
    late_days: int
    totals: Sequence[TermTotal]
    remarks: Sequence[str]
    written: Sequence[Path] = ()
    export: Export | None = None

    @property
    def sections(self) -> list[SectionTotals]:
        """The totals by section."""
        return by_section(self.plan, self.totals)


def term_result(
    request: TermRequest,
    *,
    now: datetime,
    section: str | None = None,
    to: Path | None = None,
    export: TermExport | None = None,
) -> TermResult:
    """The totals of a course, written into a folder if one is given.

    Args:
        now: With its zone.
        section: Only its students; None: everybody.
        to: The folder for the page, the table and the export; None: nothing is written.
        export: An LMS's file to fill; it needs `to`.

    Raises:
        UsageError: Something that was asked for is not there or contradicts itself, or it cannot be written.
        CourseError: A file of the course is malformed.
    """
    with open_term(request) as term:
        course, plan = term.course, term.course.plan
        results = {
            name: _results(assignment, term.graded.get(name)) for name, assignment in term.planned.items()
        }
        totals = course_totals(
            plan,
            term_people(plan, {student_id for one in results.values() for student_id in one.students}),
            results,
            late_days=course.course_late_days,
            now=now,
            used_elsewhere=_used_elsewhere(term),
        )
        said = tuple(remarks(results, totals))
        made = TermResult(
            course.title, plan, course.course_late_days, _of_section(totals, plan, section), said
        )
        if to is None:
            return made
        content: Export | None = None
        if export is not None:
            content = _exported(export, term, made)
            for name in content.files:
                require_untouched(export.into, to / name)
                if name in (PAGE, TABLE):
                    raise UsageError(f"{name} is written by this command anyway. Rename {export.into}.")
        columns = list(_columns(term, results, to))
        page = term_page(
            course.title,
            course.term,
            plan,
            columns,
            made.totals,
            remarks=said,
            late_days=made.late_days,
            generated_at=now,
        )
        table = term_csv(plan, made.totals, late_days=made.late_days)
        files = {PAGE: page.encode("utf-8"), TABLE: table.encode("utf-8")}
        if content is not None:
            files |= content.files
        books = [graded.book for graded in term.graded.values()]
        make_noted_folder(books, to, files, EXPORT, remedy=ELSEWHERE)
        for name, text in files.items():
            atomic.write(to / name, text, remedy=ELSEWHERE)
        return replace(made, written=tuple(to / name for name in files), export=content)


def _results(assignment: Assignment | None, graded: GradedAssignment | None) -> AssignmentResults:
    if graded is None:
        return AssignmentResults.of(assignment, None)
    return AssignmentResults.of(assignment, graded.results, graded.without)


def _used_elsewhere(term: OpenTerm) -> dict[str, int]:
    """Student -> the late days that went to assignments of the course whose results are not read here.

    Gradebooks hold them, too: those without a weight use late days as all others do.
    """
    there = set(term.course.assignments()) - term.graded.keys()
    used: dict[str, dict[str, int]] = {}
    for graded in term.graded.values():
        for student_id, days in graded.late_days.items():
            used.setdefault(student_id, {}).update({name: days[name] for name in days if name in there})
    return {student_id: sum(days.values()) for student_id, days in used.items()}


def _of_section(totals: Sequence[TermTotal], plan: TermPlan, section: str | None) -> Sequence[TermTotal]:
    if section is None:
        return totals
    chosen = [total for total in totals if total.section == section]
    if not chosen:
        there = sorted({total.section for total in totals} - {""})
        advice = f"There are {', '.join(there)}." if there else "No student has one: see [people] students."
        raise UsageError(f"--section {section}: has no students. {advice}")
    return chosen


def _columns(term: OpenTerm, results: Mapping[str, AssignmentResults], to: Path) -> Iterator[TermColumn]:
    """The assignments, with links to what lies beside the page."""
    for name, assignment in term.planned.items():
        graded = term.graded.get(name)
        out = graded.out if graded is not None else None
        link, pages = "", {}
        if out is not None:
            link = _link(out / "index.html", to)
            pages = {
                student_id: link_to_report
                for student_id in results[name].results or {}
                if (link_to_report := _link(report_path(out, student_id), to))
            }
        yield TermColumn(
            name,
            assignment.title if assignment is not None else name,
            term.course.plan.weights[name],
            _state(term, name),
            link,
            pages,
        )


def _state(term: OpenTerm, name: str) -> str:
    """How far an assignment is, in a few words."""
    assignment, graded = term.planned[name], term.graded.get(name)
    if graded is not None:
        return _progress([result.score for result in graded.results])
    if assignment is None or assignment.deadline is None:
        return "not graded yet"
    return f"not graded yet, due {stamp(assignment.deadline)}"


def _progress(scores: Sequence[Score]) -> str:
    """How many grades are open, and how many were reviewed and released."""
    count = len(scores)
    open_grades = sum(grade_of(score).points is None for score in scores)
    states = [grade_state(score) for score in scores]
    released, reviewed = states.count(GradeState.RELEASED), states.count(GradeState.REVIEWED)
    state = f"being marked, {open_grades} of {count} open" if open_grades else f"{counted(count, 'grade')}"
    if reviewed:
        state += f", {reviewed} of {count} reviewed"
    return f"{state}, {released} of {count} released" if released else f"{state}, none released"


def _link(path: Path, to: Path) -> str:
    """The link from a file in the folder to another file; empty if that does not exist."""
    if not path.is_file():
        return ""
    with contextlib.suppress(ValueError):  # on another drive
        return quote(Path(os.path.relpath(path.resolve(), to.resolve())).as_posix())
    return ""


# --- export ----------------------------------------------------------------------------------------------


def _exported(export: TermExport, term: OpenTerm, made: TermResult) -> Export:
    """An LMS's file with the totals that lack nothing.

    Raises:
        UsageError: Nothing is graded yet, or the file cannot be read or does not fit.
    """
    graded = list(term.graded.values())
    if not graded:
        raise UsageError("Nothing is graded yet, so there is nothing to export.")
    file = None
    if export.into is not None:
        try:
            file = export.into.name, export.into.read_bytes()
        except OSError as error:
            raise UsageError(
                f"{export.into} cannot be read ({error.strerror}). Give another file with --into."
            ) from None
    grades = {total.student_id: _grade(total) for total in made.totals}
    # what formats ask of an assignment: the name of the column, and a name for the file
    assignment = replace(graded[0].assignment, id="term", title=made.title)
    export_data = ExportData(
        assignment, (), grades, tuple(_candidates(term, grades)), file=file, choices=export.choices
    )
    return export.format.write(export_data)


def _grade(total: TermTotal) -> Grade:
    missing = "; ".join(missing_words(total)) or "not all assignments are graded"
    waits = total.points is None
    return Grade(total.student_id, total.points, total.maximum, missing if waits else "", waits)


def _candidates(term: OpenTerm, grades: Mapping[str, Grade]) -> Iterator[Candidate]:
    """Each student as rows of an LMS know them: by the number of an upload, or by the id alone."""
    known: dict[str, Candidate] = {}
    for graded in term.graded.values():
        for candidate in candidates((result.evidence, result.score) for result in graded.results):
            before = known.get(candidate.student_id)
            if not candidate.held and (before is None or not before.origin.number):
                known[candidate.student_id] = candidate
    for student_id in grades:
        yield known.get(student_id, Candidate(student_id))
