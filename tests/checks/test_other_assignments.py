"""The checks of the other assignments treat work as it deserves: `grader validate`, a few at every change."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import homework_versions
from grader.course.locate import located_course
from grader.validation.mutation_report import LEAST_NAMED, MutationReport, mutation_report
from grader.validation.trials import outcomes, trials
from tests.editions import course_in_edition
from tests.warm_hosts import WarmHosts

ROOT = Path(__file__).parents[2]
QUICK = {
    "vit_cifar10": (
        *("reference", "template", "fit_by_deepcopy", "metrics_by_trapezoids"),
        *("attention_without_scale", "fit_keeps_by_reference", "metrics_of_one_model", "study_too_short"),
    ),
    "vit_finetune": (
        *("reference", "template", "fit_schedule_per_batch", "cutmix_by_mask"),
        *("cutmix_share_as_drawn", "fit_optimizer_before_unfreezing", "freeze_zeroes_gradients"),
        "stopping_keeps_by_reference",
    ),
}
LEAST = {"vit_cifar10": (50, 30), "vit_finetune": (40, 20)}  # mistakes and forms that its page asks for


def report(
    assignment_id: str, warm_hosts: WarmHosts, only: tuple[str, ...] | None, course: Path = ROOT
) -> MutationReport:
    """What `grader validate` makes of these variants, or of all."""
    assignment = read_assignment(course / "reference" / assignment_id)
    chosen = [each for each in homework_versions(assignment) if only is None or each.name in only]
    with warm_hosts.shared():
        planned = trials(assignment, chosen)
        found = outcomes(located_course(course, environment={}), assignment, planned, jobs=2)
    return mutation_report(assignment, list(found))


@pytest.mark.parametrize("assignment_id", QUICK)
def test_a_few_variants_are_judged_right(assignment_id: str, warm_hosts: WarmHosts) -> None:
    """Full points for the reference and for forms, none for the template; each mistake by its name."""
    found = report(assignment_id, warm_hosts, QUICK[assignment_id])
    assert found.wrong == ()
    names = {verdict.outcome.version.name: verdict for verdict in found.verdicts}
    assert set(names) >= {"reference", "template"} and len(names) >= 5
    mistakes = [each for each in found.verdicts if each.outcome.version.kind == "mistake"]
    assert mistakes and all(each.detected and each.named for each in mistakes)


@pytest.mark.slow
@pytest.mark.parametrize("assignment_id", QUICK)
def test_all_variants_are_judged_right(assignment_id: str, warm_hosts: WarmHosts) -> None:
    found = report(assignment_id, warm_hosts, None)
    assert found.wrong == ()
    mistakes = [each for each in found.verdicts if each.outcome.version.kind == "mistake"]
    forms = [each for each in found.verdicts if each.outcome.version.kind == "form"]
    least_mistakes, least_forms = LEAST[assignment_id]
    assert len(mistakes) >= least_mistakes and len(forms) >= least_forms
    assert sum(each.named for each in mistakes) >= LEAST_NAMED * len(mistakes)


@pytest.mark.slow
@pytest.mark.parametrize(("edition", "least"), [(("laptop", "core"), 100), (("gpu", "full"), 130)])
def test_all_variants_of_other_editions_are_judged_right(
    tmp_path: Path, warm_hosts: WarmHosts, edition: tuple[str, str], least: int
) -> None:
    """A part that an edition lacks is missed by nobody, and the others are judged as ever."""
    found = report("vit_cifar10", warm_hosts, None, course_in_edition(tmp_path, *edition))
    assert found.wrong == ()
    mistakes = [each for each in found.verdicts if each.outcome.version.kind == "mistake"]
    assert len(mistakes) >= least
    assert sum(each.named for each in mistakes) >= LEAST_NAMED * len(mistakes)
