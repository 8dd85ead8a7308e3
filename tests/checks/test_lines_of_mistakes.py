"""The line that is told of a known mistake is one that the mistake changes, and what is told is short."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.analysis.programs import program
from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, Kind, homework_versions
from grader.domain.analyzed_program import line_at
from grader.domain.analyzed_program import place_of as parsed
from grader.domain.assignment import Assignment
from grader.judge.course_code import Mistake, course_code
from grader.judge.source_places import place_of

REFERENCE = Path(__file__).parents[2] / "reference"
MOST_WORDS = 80
LEAST = {"vit_defects": 120, "vit_cifar10": 70, "vit_finetune": 85}  # mistakes whose line is told
# lines that are right by themselves: what is missing belongs beside them, or what they use is wrong
# fmt: off
BESIDE = {
    "vit_defects": {
        "attention_not_called", "confusion_in_training_mode", "evaluation_mode_for_some_batches",
        "examples_in_training_mode",
        "feed_forward_first", "feed_forward_not_called", "gradients_in_evaluation",
        "labels_of_other_images", "loss_not_reported",
        "missing_train_mode", "missing_zero_grad", "no_backward", "no_class_token", "no_softmax", "no_step",
        "step_before_backward", "step_once_per_epoch", "totals_kept_between_calls",
    },
    "vit_cifar10": {
        "attention_without_output", "epoch_in_evaluation_mode", "epoch_without_step",
        "epoch_without_zero_grad", "evaluate_in_training_mode", "fit_never_restores",
        "map_in_training_mode", "map_not_divided", "matrix_without_names", "patches_gradient_cut",
        "schedule_before_the_step", "schedule_not_stepped", "schedule_per_epoch", "vit_without_positions",
    },
    "vit_finetune": {
        "cutmix_in_one_corner", "cutmix_in_the_middle", "epoch_frozen_blocks_in_training_mode",
        "epoch_in_evaluation_mode", "epoch_without_step", "evaluate_in_training_mode",
        "fit_chooses_by_training", "fit_never_freezes", "fit_never_restores", "fit_never_stops",
        "fit_one_stopping_for_both_stages", "fit_optimizer_before_unfreezing",
        "fit_restores_only_when_stopped", "matrix_without_names", "stopping_keeps_the_last",
        "stopping_restores_nothing",
    },
}
# fmt: on


def told(assignment: Assignment, variant: HomeworkVersion, mistake: Mistake) -> str | None:
    """The line of a mistake in its own homework, where it is not a beginning of a part."""
    rules = replace(assignment.program_rules, further={})  # places are those of the first model's program
    read = program("homework.py", variant.source.encode(), rules)
    where = place_of(read, mistake.component, mistake.look_for)
    place = parsed(where)
    if place is None or where == place_of(read, mistake.component):
        return None
    return line_at(read.source, place)


def reported_lines(assignment: Assignment) -> Iterator[tuple[str, str, bool]]:
    """(Mistake, its line, whether the solution has that line, too), of each mistake."""
    mistakes = course_code(assignment).mistakes
    made = homework_versions(assignment)
    solution = next(one for one in made if one.kind is Kind.REFERENCE)
    right = {line.strip() for line in solution.source.split("\n")}
    for variant in made:
        if variant.kind is not Kind.MISTAKE:
            continue
        if (line := told(assignment, variant, mistakes[variant.name])) is not None:
            yield variant.name, line, line in right


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LEAST))
def test_the_line_of_a_mistake_is_the_one_to_change(name: str) -> None:
    lines = list(reported_lines(read_assignment(REFERENCE / name)))
    assert len(lines) >= LEAST[name]
    beside = {mistake: line for mistake, line, in_solution in lines if in_solution}
    assert beside.keys() == BESIDE[name], beside


@pytest.mark.parametrize("name", sorted(LEAST))
def test_what_is_told_of_a_mistake_is_short(name: str) -> None:
    words = {
        mistake.id: len(f"{mistake.message} {mistake.hint}".split())
        for mistake in course_code(read_assignment(REFERENCE / name)).mistakes.values()
    }
    assert {mistake: count for mistake, count in words.items() if count > MOST_WORDS} == {}
