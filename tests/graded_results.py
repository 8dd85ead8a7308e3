"""Results with known totals, and exports of them: for the tests of several folders."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from grader.domain.evidence import Attestation, Blame, Evidence, Finding, Status
from grader.domain.score import GradeStatus, LateRecord, Score, ScoreLine
from grader.domain.submission import Submission
from grader.grading.submission_draws import SubmissionDraws
from grader.lms.export_format import Choices, Export, ExportData, ExportFormat
from grader.publishing.exporting import exported

Result = tuple[Evidence, Score]
PLAIN = Choices()
LAB_8 = SimpleNamespace(id="lab8", title="Lab 8", maximum=100, review_required=False)
WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
FINDINGS = (
    Finding("keeps_shape", "Attention", "Attention returns the shape.", Status.PASSED, seconds=0.25),
    Finding(
        "matches_oracle",
        "Attention",
        "Attention is scaled.",
        Status.FAILED,
        Blame.STUDENT,
        "missing_scale",
        "The scale is missing \x07 & <b>.",
        "Divide.",
        "homework.py:41",
        0.5,
    ),
    Finding("runs", "ViT", "ViT runs.", Status.ERRORED, Blame.ENGINE, message="Our fault."),
    Finding("counts", "ViT", "ViT counts.", Status.SKIPPED, Blame.STUDENT, message="Not tried."),
)


def nothing_drawn(submission: Submission) -> SubmissionDraws:
    """What is drawn for a submission where nothing depends on it."""
    return SubmissionDraws({}, 0, "", {})


@pytest.fixture
def a_result() -> Callable[..., Result]:
    """`a_result(student_id, total, ...)`: evidence and a score with an automatic item and one by a person."""

    def made(
        student_id: str,
        total: float | None = 64.5,
        *,
        awaiting: bool = False,
        not_run: bool = False,
        status: GradeStatus = GradeStatus.GRADED,
        after: float | None = None,
        late: LateRecord | None = None,
        level: str = "strict",
        maximum: float = 100,
        **fields: Any,
    ) -> Result:
        if after is not None:
            late = LateRecord("late", 1, (total or 0) - after, after, False, "1 day late.")
        state = "awaiting" if awaiting else "not_run" if not_run else "decided"
        lines = (
            ScoreLine("model", "The model", total, maximum - 35, "As found.", "decided"),
            ScoreLine(
                "q6", "Question 6", 0.0 if state == "decided" else None, 35, "A person decides.", state
            ),
        )
        evidence = Evidence(
            student_id,
            "lab8",
            "ab12",
            WHEN,
            findings=FINDINGS,
            attestation=Attestation(level, {}),
            status=None if status in (GradeStatus.GRADED, GradeStatus.INCOMPLETE) else status.value,
            **fields,
        )
        return evidence, Score(student_id, status, lines, total, maximum, maximum, late=late)

    return made


def export(
    what: ExportFormat,
    results: list[Result],
    file: tuple[str, bytes] | None = None,
    choices: Choices = PLAIN,
    *,
    assignment: Any = LAB_8,
    reports: Mapping[str, bytes] | None = None,
    account: tuple[tuple[str, str | None], ...] = (),
    partial: bool = False,
) -> Export:
    """An export of results as `grader export` makes it."""
    order = ExportData(
        assignment, results, {}, (), file, choices, reports=lambda _: reports or {}, account=account
    )
    return exported(what, order, partial=partial)
