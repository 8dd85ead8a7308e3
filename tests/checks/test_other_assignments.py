"""The checks of the other assignments treat work as it deserves: `grader validate`, whole."""

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
LEAST = {"vit_cifar10": (50, 30), "vit_finetune": (40, 20)}  # mistakes and forms that its page asks for


def report(assignment_id: str, warm_hosts: WarmHosts, course: Path = ROOT, every: int = 1) -> MutationReport:
    """What `grader validate` makes of all its homeworks, or of one in `every` and one of each part."""
    assignment = read_assignment(course / "reference" / assignment_id)
    with warm_hosts.shared():
        planned = [
            trial
            for number, trial in enumerate(trials(assignment, homework_versions(assignment)))
            if number % every == 0 or trial.components is None
        ]
        found = outcomes(located_course(course, environment={}), assignment, planned, jobs=2)
    return mutation_report(assignment, list(found), complete=every == 1)


@pytest.mark.slow
@pytest.mark.parametrize("assignment_id", LEAST)
def test_all_variants_are_judged_right(assignment_id: str, warm_hosts: WarmHosts) -> None:
    found = report(assignment_id, warm_hosts)
    assert found.wrong == ()
    mistakes = [each for each in found.verdicts if each.outcome.version.kind == "mistake"]
    forms = [each for each in found.verdicts if each.outcome.version.kind == "form"]
    least_mistakes, least_forms = LEAST[assignment_id]
    assert len(mistakes) >= least_mistakes and len(forms) >= least_forms
    assert sum(each.named for each in mistakes) >= LEAST_NAMED * len(mistakes)


@pytest.mark.slow
@pytest.mark.parametrize(("edition", "least"), [(("laptop", "core"), 33), (("gpu", "full"), 43)])
def test_variants_of_other_editions_are_judged_right(
    tmp_path: Path, warm_hosts: WarmHosts, edition: tuple[str, str], least: int
) -> None:
    """A part that an edition lacks is missed by nobody, and the others are judged as ever.

    A third of them, of all parts: each is judged in the usual edition as well.
    """
    course = course_in_edition(tmp_path, *edition)
    found = report("vit_cifar10", warm_hosts, course, every=3)
    assert found.wrong == ()
    mistakes = [each for each in found.verdicts if each.outcome.version.kind == "mistake"]
    assert len(mistakes) >= least
    parts = {part for each in mistakes for part in each.outcome.version.parts}
    components = read_assignment(course / "reference" / "vit_cifar10").components
    assert parts == {component.name for component in components}
    assert sum(each.named for each in mistakes) >= LEAST_NAMED * len(mistakes)
