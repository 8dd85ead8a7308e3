"""No check breaks, whatever a part gives: a sample of odd homeworks, and those that once broke one."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import Kind, homework_versions
from grader.course.locate import located_course
from grader.course.odd_versions import odd_versions
from grader.validation.mutation_report import is_broken
from grader.validation.trials import Trial, outcomes
from tests.warm_hosts import WarmHosts

ROOT = Path(__file__).parents[2]
ALL = 10_000
BROKE = {  # a check once, by the assignment
    "vit_defects": (
        *("FeedForward_gives_one_number", "ViT_gives_noise_of_its_last_layer"),
        "ViT_gives_zeros_of_its_last_layer",
    ),
    "vit_cifar10": (
        *(
            "PatchEmbedding_gives_doubles",
            "EncoderBlock_gives_noise",
            "EncoderBlock_gives_noise_like_its_input",
        ),
        *("BasicBlock_gives_empty_result", "train_epoch_gives_nothing", "train_epoch_leaves_gradients_off"),
    ),
    "vit_finetune": ("plot_confusion_matrix_draws_something_odd",),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKE)
def test_no_check_breaks(name: str, warm_hosts: WarmHosts) -> None:
    assignment = read_assignment(ROOT / "reference" / name)
    [reference] = [one for one in homework_versions(assignment) if one.kind is Kind.REFERENCE]
    every = odd_versions(assignment, reference, ALL)
    sample = {version.name for version in every[: len(assignment.components)]}
    planned = [Trial(version, version.parts) for version in every if version.name in {*sample, *BROKE[name]}]
    assert {*sample, *BROKE[name]} == {trial.version.name for trial in planned}
    with warm_hosts.shared():
        found = outcomes(located_course(ROOT, environment={}), assignment, planned, jobs=2)
    assert [outcome.fault for outcome in found if outcome.fault] == []
    broken = {
        outcome.version.name: [finding.check for finding in outcome.findings if is_broken(finding)]
        for outcome in found
    }
    assert {name: checks for name, checks in broken.items() if checks} == {}
