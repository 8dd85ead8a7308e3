"""The sheets of oral checks: for each student a page of questions, and a page of notes for the examiner.

Each is one A4 page when it is printed, whatever the student wrote. The sheet for the student never says why
the student was picked, what anything is worth, or what a good answer holds; the notes never say what anything
is worth either. The same work gets the same questions. It never picks students and records no outcome.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.oral_check import OralCheck
from grader.domain.submission_result import Result
from grader.reports.oral.chosen_questions import COUNT, SheetQuestion, five
from grader.reports.oral.code_questions import assigned_questions, layer_questions, line_questions
from grader.reports.oral.own_code import own_parts
from grader.reports.oral.training_questions import choice_questions, error_questions, result_questions
from grader.reports.typesetting import environment, language_of


@dataclass(frozen=True)
class OralSheet:
    """What one student is asked.

    Attributes:
        check: Why the student was picked; for the notes.
        questions: At most COUNT.
        digest: Of the submission, shortened.
    """

    student_id: str
    check: OralCheck
    questions: tuple[SheetQuestion, ...]
    file: str
    digest: str

    @property
    def missing(self) -> int:
        """How many questions fewer than COUNT could be made from the work."""
        return COUNT - len(self.questions)


def oral_sheet(
    assignment: Assignment, result: Result, earlier: Sequence[Evidence], check: OralCheck
) -> OralSheet:
    """The questions for a student who was picked.

    Args:
        result: Of the submission that counts.
        earlier: The evidence about the student's earlier submissions, oldest first.
        check: The student's check.
    """
    evidence = result.evidence
    seed = f"{evidence.student_id} {evidence.submission_digest}"
    parts, language = own_parts(assignment, evidence), language_of(assignment)
    mistakes = {
        finding.diagnosis
        for found in (evidence, *earlier)
        for finding in found.findings
        if finding.diagnosis is not None
    }
    questions = [
        *assigned_questions(assignment, evidence, parts, mistakes),
        *line_questions(evidence, parts, seed),
        *layer_questions(evidence),
        *result_questions(assignment, evidence, language),
        *choice_questions(evidence),
        *error_questions(evidence, earlier, result.score.claim),
    ]
    return OralSheet(
        student_id=evidence.student_id,
        check=check,
        questions=five(questions, seed),
        file=evidence.code_file,
        digest=evidence.submission_digest[:12],
    )


def question_page(assignment: Assignment, sheets: Sequence[OralSheet]) -> str:
    """The sheets for students as one self-contained HTML document, one printed page each."""
    return _page("oral_questions.html.j2", assignment, sheets)


def notes_page(assignment: Assignment, sheets: Sequence[OralSheet]) -> str:
    """The notes for the examiner as one self-contained HTML document, one printed page each."""
    return _page("oral_notes.html.j2", assignment, sheets)


def _page(template: str, assignment: Assignment, sheets: Sequence[OralSheet]) -> str:
    made = environment(language_of(assignment)).get_template(template)
    return made.render(assignment=assignment, sheets=sheets, count=COUNT)
