"""Public checks alone, as students have them: they tell mistakes, each at its line, and nothing else."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import Kind, homework_versions
from grader.domain.analyzed_program import Program, line_at, place_of
from grader.domain.assignment import Assignment
from grader.domain.evidence import Finding, Status
from grader.judge.examination import Checks
from grader.judge.student import Student
from grader.protocol.link import WorkerProcess
from tests.unseen.build import LEFT_TO_A_PERSON

ROOT = Path(__file__).parents[2]
# mistakes of vit_defects that hidden checks are for
# fmt: off
ONLY_HIDDEN = {
    "accuracy_appended", "attention_cut", "attention_dropout_share_kept",
    "channels_averaged", "class_names_in_fixed_order", "class_token_not_learned",
    "confusion_kept_between_calls", "counts_written_transposed", "dropout_share_kept",
    "embedding_dropout_share_kept", "example_names_in_fixed_order",
    "feed_forward_residual", "first_loss_divided", "head_repeated", "heads_share_scores",
    "inner_not_registered", "labels_misplaced", "loss_over_batch", "loss_scale_varies",
    "max_pooling", "nll_of_scores", "position_missing", "positions_are_numbers",
    "positions_concatenated", "positions_multiplied", "positions_not_kept",
    "projection_per_patch", "reported_loss_divided_again", "reported_loss_not_averaged",
    "samples_per_class_ignored", "scale_by_inner_dim", "scale_of_rounded_root",
    "scores_averaged_over_heads", "shared_norm", "skip_cut",
    "transformer_dropout_in_evaluation", "transformer_not_used", "values_not_used",
}
# fmt: on
# assignment -> mistakes that are not told; mistakes for which a line within the part is marked
EXPECTED = {
    "vit_defects": (ONLY_HIDDEN, 86),
    "vit_cifar10": (
        # mistakes in tables that are handed in, which nobody checks at home
        {
            *("study_base_once", "study_changes_two_at_once", "study_in_percent", "study_out_of_bounds"),
            *("study_too_short", "metrics_in_percent", "metrics_of_one_model"),
        },
        111,
    ),
    "vit_finetune": (set(), 120),
}

FREE = "^A person must look|It costs no points"
MOST_MESSAGES = 1.1  # of a mistake that they see, on average
BEGINS = ("def ", "class ")  # of a part: nothing is marked within it
# mistakes of vit_defects whose marked lines are right by themselves: what is missing belongs beside them, or
# what they use is wrong
BESIDE = {
    *("all_attentions_first", "attention_not_called", "feed_forward_first", "feed_forward_not_called"),
    *("channels_fixed", "image_size_fixed", "patch_size_fixed", "patches_lost", "patches_not_projected"),
    *("confusion_in_training_mode", "examples_in_training_mode", "evaluation_mode_for_some_batches"),
    *("gradients_in_evaluation", "missing_eval_mode", "missing_train_mode"),
    *("missing_zero_grad", "no_step", "step_before_backward", "step_once_per_epoch"),
    *("keys_share_a_projection", "labels_of_other_images"),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what is provided is read in isolated workers"),
]


@dataclass(frozen=True)
class Read:
    """A homework, and what its author reads."""

    name: str
    kind: str
    program: Program
    parts: tuple[str, ...] | None
    wrong: tuple[Finding, ...] = ()


def homeworks(assignment: Any) -> Iterator[Read]:
    """All versions but the template, and right work that was written without sight of the checks.

    Of a form and a mistake only its own parts are checked, as `grader validate` does; of the others all.
    """
    for one in homework_versions(assignment):
        if one.kind in (Kind.REFERENCE, Kind.FORM, Kind.MISTAKE):
            read = program("homework.py", one.source.encode(), assignment.program_rules)
            yield Read(one.name, one.kind, read, tuple(one.parts) or None)
    for path in sorted((ROOT / "tests" / "unseen" / assignment.id / "correct").glob("*/homework.*")):
        if path.suffix in (".py", ".ipynb"):
            others = (each for each in path.parent.rglob("*.py") if each != path)
            modules = {each.relative_to(path.parent).as_posix(): each.read_bytes() for each in others}
            read = program(path.name, path.read_bytes(), assignment.program_rules, modules)
            yield Read(path.parent.name, "unseen", read, None)


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


@pytest.fixture(scope="module", params=EXPECTED)
def told(request: pytest.FixtureRequest) -> tuple[str, list[Read]]:
    """The assignment, and all its homeworks."""
    from grader.judge.course_code import course_code
    from grader.judge.examination import run_pytest
    from grader.sandbox.host_client import Host
    from grader.sandbox.process_limits import ProcessLimits
    from grader.sandbox.readable_files import given_files

    assignment = read_assignment(ROOT / "reference" / request.param)
    found: list[Read] = []
    errors: list[Exception] = []

    def ask(checks: Checks) -> None:
        try:
            for one in homeworks(assignment):
                job = unfolded(assignment, one.program, one.parts, lambda: host.spawn(ProcessLimits()))
                found.append(replace(one, wrong=tuple(job(checks))))
        except Exception as error:  # noqa: BLE001 - pytest around the checks would swallow it
            errors.append(error)

    paths = sorted((assignment.folder / "checks").glob("test_*.py"))
    with Host.start("grader.worker", given=given_files(assignment)) as host:
        run_pytest(paths, assignment, course_code(assignment), ask)
    if errors:
        raise errors[0]
    return assignment.id, found


def test_correct_homework_passes(told: tuple[str, list[Read]]) -> None:
    right = [one for one in told[1] if one.kind != Kind.MISTAKE]
    assert sum(one.kind == "unseen" for one in right) >= 18 and len(right) > 45
    wrong = {one.name: [each.message for each in one.wrong] for one in right if one.wrong}
    assert wrong.keys() <= LEFT_TO_A_PERSON.get(told[0], {}).keys(), wrong
    costly = [message for each in wrong.values() for message in each if not re.search(FREE, message)]
    assert not costly


def test_mistakes_are_told(told: tuple[str, list[Read]]) -> None:
    assignment, found = told
    untold, least_lines = EXPECTED[assignment]
    mistakes = [one for one in found if one.kind == Kind.MISTAKE]
    assert {one.name for one in mistakes if not one.wrong} == untold
    messages = [len(one.wrong) for one in mistakes if one.wrong]
    assert sum(messages) <= MOST_MESSAGES * len(messages), Counter(messages)
    lines = {one.name: marked for one in mistakes if (marked := list(marked_lines(one)))}
    assert len(lines) >= least_lines
    if assignment == "vit_defects":
        [solution] = [one for one in found if one.kind == Kind.REFERENCE]
        right = {line.strip() for text in solution.program.source.values() for line in text.split("\n")}
        assert {name for name, marked in lines.items() if not right.isdisjoint(marked)} == BESIDE


def marked_lines(one: Read) -> Iterator[str]:
    """Those within a part that its author is shown."""
    for finding in one.wrong:
        place = place_of(finding.where)
        if place is not None and not (line := line_at(one.program.source, place)).startswith(BEGINS):
            yield line
