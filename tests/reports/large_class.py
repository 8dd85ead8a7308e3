"""A class of any size, drawn with a fixed seed: what a page looks like with many results."""

import random
from dataclasses import replace
from datetime import timedelta

from grader.domain.analyzed_program import Claim, Note
from grader.domain.assignment import Assignment
from grader.domain.evidence import Blame, Checkpoint, Evidence, Status, Training, TrainingOutcome
from grader.domain.score import Score
from grader.domain.submission import RefusedFile, Role
from grader.scoring import score

HARD_CHECK = "vit_rejects_odd_patches"  # fails for most: a suspect
COIN_CHECK = "attention_separates_images"  # passes by the toss of a coin: it tells nothing


def a_large_class(examples, assignment: Assignment, size: int) -> list[tuple[Evidence, Score]]:
    """(Evidence, Score) of so many submissions, of all kinds, scored by the real rules."""
    chance = random.Random(20261120)
    plain = examples.base("0", assignment)
    found = []
    for number in range(size):
        student_id = f"4001{10_000 + 37 * number:05d}"
        evidence = replace(plain, student_id=student_id, notes=(), shown_epochs=None)
        evidence = _with_code(evidence, examples, assignment, chance)
        evidence = _with_training(evidence, examples, chance)
        evidence = _with_circumstances(evidence, assignment, number, chance)
        found.append((evidence, score(assignment, evidence)))
    return found


def all_refused(examples, assignment: Assignment, size: int) -> list[tuple[Evidence, Score]]:
    """A class of which nothing could be graded."""
    refused = examples.a_class(assignment)["refused"]
    return [
        (replace(refused.evidence, student_id=str(number)), replace(refused.score, student_id=str(number)))
        for number in range(1000, 1000 + size)
    ]


def _with_code(evidence: Evidence, examples, assignment: Assignment, chance: random.Random) -> Evidence:
    skill = chance.betavariate(4, 1.5)
    changes: dict[str, dict[str, object]] = {}
    for check in assignment.checks:
        odds = {HARD_CHECK: 0.35, COIN_CHECK: 0.5}.get(check.id, 0.35 + 0.65 * skill)
        if check.component == "submission" or chance.random() < odds:
            continue
        changes[check.id] = {
            "status": Status.FAILED,
            "blame": Blame.STUDENT,
            "message": "The output is not what it should be.",
        }
        if check.id == "attention_matches_oracle":
            name = chance.choice(["missing_scale", "missing_scale", "softmax_wrong_axis"])
            changes[check.id] |= {
                "diagnosis": name,
                "message": {
                    "missing_scale": "The attention scores are not divided by √dim_head before the softmax.",
                    "softmax_wrong_axis": "The softmax runs over the queries instead of over the keys.",
                }[name],
                "hint": "Write down the shape of the scores, and which axis the keys are.",
            }
        if check.id == "transformer_adds_residuals":
            changes[check.id] |= {"diagnosis": "no_residual", "message": "A residual connection is missing."}
    return replace(evidence, findings=examples.findings(assignment, changes))


def _with_training(evidence: Evidence, examples, chance: random.Random) -> Evidence:
    accuracy, epochs = min(0.97, max(0.15, chance.gauss(0.68, 0.14))), chance.choice([10, 20, 30, 60])
    training = replace(
        examples.a_training(accuracy, epochs), seconds=epochs * chance.uniform(2, 9), predictions=()
    )
    if chance.random() < 0.05:
        last = replace(training.epochs[-1], train_loss=float("nan"), test_loss=float("nan"))
        training = replace(
            training,
            outcome=TrainingOutcome.DIVERGED,
            reason="The loss is not a number from epoch 4 on.",
            epochs=(*training.epochs[:3], last),
            accuracy=1 / 6,
            interval=(0.13, 0.2),
        )
    claimed = accuracy + chance.choice([0, 0.003, -0.01, 0.02, 0.02, 0.11, -0.07])
    claim = Claim(min(1.0, claimed), "cell 21") if chance.random() < 0.8 else None
    return replace(
        evidence,
        training=training,
        claim=claim,
        parameters=int(10 ** chance.uniform(4.6, 6.7)),
        seconds={"reading": chance.random(), "checks": 8 + 6 * chance.random(), "training": training.seconds},
    )


def _with_circumstances(
    evidence: Evidence, assignment: Assignment, number: int, chance: random.Random
) -> Evidence:
    """Every so many have something of their own."""
    if number % 23 == 5:
        return replace(
            evidence,
            status="refused",
            reason=f"homework.py, line {chance.randrange(1, 99)}: '(' was never closed.",
            findings=(),
            training=Training(TrainingOutcome.NOT_RUN),
            claim=None,
            parameters=None,
            seconds={"reading": 0.3},
        )
    if number % 31 == 7:
        return replace(evidence, status="engine_error", reason="The worker's machine ran out of disk space.")
    if number % 19 == 3:
        return replace(evidence, missing=(Role.REPORT,))
    if number % 29 == 4:
        file = RefusedFile("notes.docx", "It is not among the files that the assignment asks for.")
        return replace(evidence, refused_files=(file,))
    if number % 37 == 9:
        return replace(
            evidence,
            notes=(Note("homework.py:12: 90210 characters of data are written out.", ask_person=True),),
        )
    if number % 41 == 2:
        told = "The file's pos_embedding is 1 x 65 x 64, the model's 1 x 50 x 64."
        return replace(evidence, checkpoint=Checkpoint("mismatch", told))
    if number % 17 == 6 and assignment.deadline is not None:
        return replace(evidence, received_at=assignment.deadline + timedelta(hours=chance.randrange(1, 60)))
    return evidence
