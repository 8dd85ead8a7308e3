"""What is a reason to ask somebody about the work, and that points are none."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from grader.domain.analyzed_program import Claim, ForbiddenUse, Note, Place
from grader.domain.assignment import Assignment
from grader.domain.evidence import Checkpoint, Evidence, Training, TrainingOutcome
from grader.domain.measure import StudyAgain, StudyRow
from grader.domain.oral_check import FLAGS, OralReason
from grader.domain.program_run import Pried, Prying
from grader.domain.submission import RefusedFile
from grader.domain.submission_result import Result
from grader.reports.whole_class.oral_flags import oral_flags
from grader.reports.whole_class.similarity_record import PairRecord, SimilarityRecord
from grader.scoring import score

WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
TRAINED = Training(TrainingOutcome.COMPLETED, accuracy=0.7)
ROWS = (
    StudyRow({"depth": "2"}, 0.5, measured=0.5, is_base=True),
    StudyRow({"depth": "4"}, 0.9, measured=0.5),
)


@pytest.fixture
def plain(class_results: Any) -> Evidence:
    """Evidence about a submission in which nothing is odd."""
    good: Evidence = class_results["good"].evidence
    training = replace(TRAINED, planned_epochs=30)
    return replace(good, student_id="400101201", claim=None, shown_epochs=None, notes=(), training=training)


@pytest.fixture
def reasons(assignment: Assignment, plain: Evidence) -> Callable[..., list[OralReason]]:
    """The reasons for a student with these fields of the evidence."""

    def found(pairs: tuple[PairRecord, ...] = (), **fields: Any) -> list[OralReason]:
        evidence = replace(plain, **fields)
        similarity = SimilarityRecord(
            assignment=assignment.id, compared_at=WHEN, submissions=2, threshold=0.6, pairs=list(pairs)
        )
        flags = oral_flags(assignment, [Result(evidence, score(assignment, evidence))], similarity)
        return [flag.reason for flag in flags.get("400101201", ())]

    return found


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"claim": Claim(0.95, "In [7], cell 12")}, OralReason.CLAIM),
        ({"shown_epochs": 30, "training": replace(TRAINED, planned_epochs=5)}, OralReason.CLAIM),
        ({"notes": (Note("homework.py:3: text is executed.", ask_person=True),)}, OralReason.CODE),
        ({"pried": (Pried(Prying.FRAMES, Place("homework.py", 3), "Attention"),)}, OralReason.CODE),
        ({"unproven": ("Attention",)}, OralReason.WATCH),
        ({"checkpoint": Checkpoint("mismatch", "The keys differ.")}, OralReason.WEIGHTS),
        ({"training": replace(TRAINED, objections=("It is another model.",))}, OralReason.MODEL),
        ({"study": StudyAgain(ROWS, tolerance=0.05)}, OralReason.STUDY),
    ],
)
def test_what_is_found_in_the_work_is_a_flag(
    reasons: Callable[..., list[OralReason]], fields: dict[str, Any], reason: OralReason
) -> None:
    assert reasons(**fields) == [reason] and reason in FLAGS


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"claim": Claim(0.72, "In [7], cell 12")},
        {"notes": (Note("A cell has a magic."),)},
        {"refused_files": (RefusedFile("a.txt", "was not asked for."),)},
        {"training": replace(TRAINED, accuracy=0.6)},
        {"forbidden": (ForbiddenUse("timm", "timm", Place("homework.py", 1), ("ViT",)),)},
        {"missing": ("report",)},
        {"study": StudyAgain(ROWS, tolerance=0.5)},
    ],
)
def test_what_says_something_about_points_alone_is_none(
    reasons: Callable[..., list[OralReason]], fields: dict[str, Any]
) -> None:
    assert reasons(**fields) == []


def test_a_pair_is_a_flag_for_both_and_one_of_an_earlier_class_for_one(
    reasons: Callable[..., list[OralReason]], assignment: Assignment
) -> None:
    pair = PairRecord(one="400101299", other="400101201", before=False, says="the same weights")
    assert reasons((pair, pair)) == [OralReason.SIMILAR], "one flag for each reason"
    before = PairRecord(one="400101201", other="399", before=True, says="2 identical pictures")
    similarity = SimilarityRecord(
        assignment=assignment.id, compared_at=WHEN, submissions=2, threshold=0.6, pairs=[before]
    )
    flags = oral_flags(assignment, [], similarity)
    assert {student: [str(flag) for flag in found] for student, found in flags.items()} == {
        "400101201": ["similar: 2 identical pictures, with 399 from an earlier class."]
    }


def test_points_change_no_flag(assignment: Assignment, plain: Evidence) -> None:
    evidence = replace(plain, claim=Claim(0.95, "page 3"))
    given = score(assignment, evidence)
    worth = [
        replace(given, total=total, lines=tuple(replace(line, points=points) for line in given.lines))
        for total, points in ((100.0, 5.0), (0.0, 0.0), (None, None))
    ]
    found = [oral_flags(assignment, [Result(evidence, each)], None) for each in worth]
    assert found[0] == found[1] == found[2] and found[0]
