"""Public checks alone, as a student has them: the line that they mark is one to change, or beside it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.course.homework_versions import HomeworkVersion, Kind, homework_versions
from grader.domain.analyzed_program import Program, line_at, place_of
from grader.domain.assignment import Assignment
from grader.domain.evidence import Finding, Status
from grader.judge.examination import Checks
from grader.judge.student import Student
from grader.protocol.link import WorkerProcess

LEAST = 86  # mistakes for which a line that they change is marked
MOST_MESSAGES = 1.1  # of a mistake that they see, on average
BEGINS = ("def ", "class ")  # of a part: nothing is marked within it
# marked lines that are right by themselves: what is missing belongs beside them, or what they use is wrong
BESIDE = {
    *("all_attentions_first", "attention_not_called", "feed_forward_first", "feed_forward_not_called"),
    *("channels_fixed", "image_size_fixed", "patch_size_fixed", "patches_lost", "patches_not_projected"),
    *("confusion_in_training_mode", "examples_in_training_mode", "evaluation_mode_for_some_batches"),
    *("gradients_in_evaluation", "missing_eval_mode", "missing_train_mode"),
    *("missing_zero_grad", "no_step", "step_before_backward", "step_once_per_epoch"),
    *("keys_share_a_projection", "labels_of_other_images"),
}


def unfolded(
    assignment: Assignment, read: Program, parts: tuple[str, ...] | None, spawn: Callable[[], WorkerProcess]
) -> Callable[[Checks], list[Finding]]:
    """What a student reads who has neither hidden checks nor the reference; parts: None for all."""

    def job(checks: Checks) -> list[Finding]:
        public = tuple(replace(spec, shown_by=()) for spec in assignment.checks if spec.public)
        checks.assignment, before = replace(assignment, checks=public), checks.code
        checks.code = None
        student = Student(spawn, read, checks.assignment, seed=1)
        try:
            findings = checks.examined(student, components=parts).findings
        finally:
            student.close()
            checks.code = before
        return [each for each in findings if each.status is not Status.PASSED and not each.because]

    return job


@pytest.mark.slow
def test_a_public_check_marks_the_line_to_change(
    assignment: Assignment,
    analyzed: Callable[[str], Program],
    spawn: Callable[[], WorkerProcess],
    with_checks: Callable[[Callable[[Any], Any]], Any],
) -> None:
    made = homework_versions(assignment)
    solution = next(one for one in made if one.kind is Kind.REFERENCE)
    right = {line.strip() for line in solution.source.split("\n")}

    def marked(version: HomeworkVersion) -> list[str]:
        read = analyzed(version.source)
        found = with_checks(unfolded(assignment, read, tuple(version.parts), spawn))
        places = [place_of(each.where) for each in found]
        return [line_at(read.source, place) for place in places if place is not None]

    told = {one.name: lines for one in made if one.kind is Kind.MISTAKE and (lines := marked(one))}
    inner = {name: [line for line in lines if not line.startswith(BEGINS)] for name, lines in told.items()}
    assert sum(any(line not in right for line in lines) for lines in inner.values()) >= LEAST
    assert {name for name, lines in inner.items() if not right.isdisjoint(lines)} == BESIDE
    assert sum(map(len, told.values())) / len(told) <= MOST_MESSAGES, Counter(map(len, told.values()))
