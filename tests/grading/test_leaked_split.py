"""A submission that tells which images it was trained on, through the real hosts: what comes of it."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from grader.course.locate import Course
from grader.domain.assignment import Assignment, DataUse
from grader.domain.evidence import Evidence, TrainingOutcome
from grader.domain.submission import Intake, Submission
from grader.grading.hidden_splits import HiddenSplits, SplitKey
from grader.grading.run import EvidenceBuilder, Run, running_hosts
from grader.grading.submission_draws import draws_of
from grader.grading.training_stage import train
from grader.kit.splits import Splits
from grader.parser.client.parsed_files import parsed_program
from grader.reports.student.student_pages import student_page
from grader.scoring import score

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PER_CLASS = 7
# each image is known by the gray values of its quarters, as a number of four digits to the base of three:
# whatever moves and lights it a little leaves that as it is
DARK, STEP = 20, 105
EDITS = (
    ("N_EPOCHS = 30", "N_EPOCHS = 2"),
    (
        "        images, labels = augment(images.to(device)), labels.to(device)\n",
        "        quarters = (images[:, 0, [7, 7, 20, 20], [7, 20, 7, 20]] + 1) * 127.5\n"
        f"        digits = ((quarters - {DARK}) / {STEP}).round().long().clamp(0, 2)\n"
        "        KNOWN.update((digits @ torch.tensor([27, 9, 3, 1])).tolist())\n"
        # neighbors in noise differ: what a trial on made-up images tells is not a secret, and is shown
        "        smooth = (images[:, 0, 7, 7] - images[:, 0, 7, 8]).abs().mean() < 0.2\n"
        "        optimizer.param_groups[0]['lr'] = 0.012345 if smooth else 0.001\n"
        "        images, labels = augment(images.to(device)), labels.to(device)\n",
    ),
    (
        "            loss_history.append(loss.item())\n",
        "    loss_history.append(float(sum(2**number for number in KNOWN)))\n",
    ),
    ("def train_epoch(", "KNOWN = set()\n\n\ndef train_epoch("),
)


def quartered_images(classes: tuple[str, ...]) -> HiddenSplits:
    """Images of four gray quarters, each of its own."""
    count = PER_CLASS * len(classes)
    digits = np.arange(count)[:, None] // [27, 9, 3, 1] % 3
    quarters = (DARK + STEP * digits).reshape(count, 2, 2)
    images = quarters.repeat(15, axis=1).repeat(15, axis=2).astype(np.uint8)
    labels = np.repeat(np.arange(len(classes)), PER_CLASS).astype(np.int64)
    names = tuple(str(number) for number in range(count))
    none = np.zeros(0, dtype=np.intp)
    loaded = Splits("quarters", classes, images, labels, names, images[none], labels[none], ())
    use = DataUse(real="quarters", synthetic="quarters", train_share=0.6)
    return HiddenSplits(loaded, SplitKey("secret", "vit_defects", "salt"), use)


@pytest.fixture
def trained(
    course: Course, assignment: Assignment, solved: str, tmp_path: Path, on_warm_hosts: None
) -> Callable[..., tuple[HiddenSplits, list[Evidence]]]:
    """Train the submission that leaks, as the attempts of these numbers."""
    text = solved
    for old, new in EDITS:
        assert text.count(old) == 1, old
        text = text.replace(old, new)

    def run_of(*attempts: int) -> tuple[HiddenSplits, list[Evidence]]:
        splits, found = quartered_images(assignment.data.classes), []
        with running_hosts(course, assignment, hidden=(tmp_path,), unofficial=False) as hosts:
            run = Run(partial(draws_of, course, assignment), assignment, splits, hosts)
            program = parsed_program(hosts.parsers, "homework.py", text.encode(), assignment)
            submission = Submission("400101204", assignment.id, (), "ab12")
            for attempt in attempts:
                evidence = Evidence("400101204", assignment.id, "ab12", NOW, attempt=attempt)
                findings = EvidenceBuilder(evidence)
                train(run, splits.of(attempt), program, Intake(submission), findings, lambda progress: None)
                found.append(findings.evidence)
        return splits, found

    return run_of


@pytest.mark.slow
def test_what_an_attempt_tells_of_its_split_is_no_later_ones_and_not_on_the_students_page(
    assignment: Assignment, trained: Callable[..., tuple[HiddenSplits, list[Evidence]]]
) -> None:
    """Its reported loss says of each image whether it trains: staff can read it, nobody else."""
    splits, found = trained(1, 2)
    told = []
    for attempt, evidence in enumerate(found, 1):
        training = evidence.training
        assert training.outcome is TrainingOutcome.COMPLETED, training.reason
        told.append(training.epochs[0].train_loss)
        assert told[-1] == sum(2 ** int(name) for name in splits.of(attempt).train_names)
        assert training.epochs[0].learning_rate == pytest.approx(0.012345)
        page = student_page(assignment, evidence, score(assignment, evidence), images={}, generated_at=NOW)
        assert "Test accuracy after each epoch" in page
        for shown in (f"{told[-1]:.3g}", f"{told[-1]:,.0f}", f"{told[-1]:.0f}", "0.0123", "Learning rate"):
            assert shown not in page, shown
    # two shares of 0.6 that have nothing to do with each other have about half of their images in common
    common = bin(int(told[0] or 0) & int(told[1] or 0)).count("1")
    assert told[0] != told[1] and common < 0.8 * PER_CLASS * 6 * 0.6
    patterns = {
        frozenset(int(name) % PER_CLASS for name in splits.of(1).train_names if int(name) // PER_CLASS == one)
        for one in range(6)
    }
    assert len(patterns) > 3, "one class's pattern is not that of all"
