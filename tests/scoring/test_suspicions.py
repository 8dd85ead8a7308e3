"""What rests on suspicion takes no points: every flag is put beside the same work without it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from grader.domain.analyzed_program import Claim, Note, Place
from grader.domain.assignment import Assignment
from grader.domain.evidence import Checkpoint, Evidence, Training, TrainingOutcome
from grader.domain.measure import StudyAgain, StudyRow
from grader.domain.oral_check import FLAGS, OralReason
from grader.domain.program_run import Pried, Prying
from grader.domain.score import LineState, Score
from grader.domain.submission_result import Result
from grader.reports.student.student_pages import student_page
from grader.reports.whole_class.oral_flags import oral_flags
from grader.reports.whole_class.similarity_record import PairRecord, SimilarityRecord
from grader.scoring import score

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
STUDENT, OTHER = "400101201", "400101202"
TRAINED = Training(TrainingOutcome.COMPLETED, accuracy=0.7, planned_epochs=1)
ROWS = tuple(StudyRow({"depth": str(line)}, claimed, measured=0.5) for line, claimed in ((1, 0.5), (2, 0.9)))
SUSPICIONS: dict[str, tuple[OralReason, dict[str, Any]]] = {
    "a claim that was not reached": (OralReason.CLAIM, {"claim": Claim(0.99, "In [3]", "99 %")}),
    "outputs of more epochs": (OralReason.CLAIM, {"shown_epochs": 30}),
    "data in the source": (
        OralReason.CODE,
        {"notes": (Note("homework.py:3: holds much data; a person should look.", ask_person=True),)},
    ),
    "prying": (
        OralReason.CODE,
        {"pried": (Pried(Prying.FRAMES, Place("homework.py", 3), "Attention"),)},
    ),
    "a disturbed watch": (OralReason.WATCH, {"unproven": ("Attention",)}),
    "a watch that the training disturbed": (OralReason.WATCH, {"unproven": ("the training",)}),
    "weights of another model": (
        OralReason.WEIGHTS,
        {"checkpoint": Checkpoint("mismatch", "They do not fit.")},
    ),
    "another trained model": (
        OralReason.MODEL,
        {"training": replace(TRAINED, objections=("It answers otherwise.",))},
    ),
    "a study that differs": (OralReason.STUDY, {"study": StudyAgain(ROWS, tolerance=0.01)}),
}


@pytest.fixture
def clean(class_evidence: Callable[..., Any]) -> Evidence:
    """Work about which nothing is suspicious, below full points for its accuracy."""
    evidence: Evidence = class_evidence(STUDENT, source={"homework.py": "a\nb\nc\n"})
    return replace(evidence, training=TRAINED)


def flagged(assignment: Assignment, evidence: Evidence, similarity: Any = None) -> set[OralReason]:
    result = Result(evidence, score(assignment, evidence))
    return {flag.reason for flags in oral_flags(assignment, [result], similarity).values() for flag in flags}


def require_nothing_lost(before: Score, after: Score) -> None:
    """Each line has the points that it had, or a person is asked about it."""
    for was, now in zip(before.lines, after.lines, strict=True):
        assert now.points == was.points or (now.points is None and now.state is LineState.AWAITING), now
    assert not after.closed and after.late == before.late


def test_every_flag_is_tried(assignment: Assignment) -> None:
    assert {reason for reason, _ in SUSPICIONS.values()} | {OralReason.SIMILAR} == set(FLAGS)


@pytest.mark.parametrize(("reason", "fields"), SUSPICIONS.values(), ids=SUSPICIONS)
def test_no_suspicion_takes_points_or_accuses(
    assignment: Assignment, clean: Evidence, reason: OralReason, fields: dict[str, Any]
) -> None:
    assert reason not in flagged(assignment, clean)
    suspicious = replace(clean, **fields)
    assert reason in flagged(assignment, suspicious), "the flag is raised, so this is what would cost points"
    before, after = score(assignment, clean), score(assignment, suspicious)
    require_nothing_lost(before, after)
    page = student_page(assignment, suspicious, after, images={}, generated_at=NOW).partition("<body")[2]
    for accusation in ("copied", "cheat", "plagiar", "suspic", "dishonest"):
        assert accusation not in page.lower()
    assert "Questions about your work" not in page, "nothing is asked before a person chooses to"


def test_similar_work_is_no_part_of_a_score_or_a_report(assignment: Assignment, clean: Evidence) -> None:
    pair = PairRecord(one=STUDENT, other=OTHER, before=False, says="98 % of their own code")
    record = SimilarityRecord(
        assignment=assignment.id, compared_at=NOW, submissions=2, threshold=0.5, pairs=[pair]
    )
    assert OralReason.SIMILAR in flagged(assignment, clean, record)
    page = student_page(assignment, clean, score(assignment, clean), images={}, generated_at=NOW)
    assert OTHER not in page and "98 %" not in page
