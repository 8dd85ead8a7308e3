"""A model that a call trained is looked at again: is it the one that the assignment provides?"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.reference_solution import solved_source
from grader.domain.evidence import Finding

ASSIGNMENT = read_assignment(Path(__file__).parents[2] / "reference" / "vit_finetune")
SOLVED = solved_source((ASSIGNMENT.folder / "solution.py").read_text("utf-8"), "solution.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what is provided is read in isolated workers"),
]

# each is another model for as many classes as the training has
OTHERS = {
    "a network of its own": (
        "    if num_classes == 10:\n"
        "        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, num_classes))\n",
        "It has other weights than the provided model",
    ),
    "the provided one, asked in another way": (
        "    if num_classes == 10:\n"
        "        class Other(VisionTransformer):\n"
        "            def forward(self, x):\n"
        "                return super().forward(x + x.roll(1, dims=3))\n"
        "        return Other(num_classes)\n",
        "With its weights, the provided model answers otherwise",
    ),
}


@pytest.fixture(scope="module")
def looked_at() -> Iterator[Callable[[str], tuple[Finding, ...]]]:
    """What the checks of the trained model find in a homework's model, whose weights are moved at random."""
    from grader.judge.course_code import course_code
    from grader.judge.examination import Checks, run_pytest
    from grader.judge.repeated_calls import MeasuredModel
    from grader.judge.student import Student
    from grader.sandbox.host_client import Host
    from grader.sandbox.process_limits import ProcessLimits
    from grader.sandbox.readable_files import given_files

    [call] = [measure.call for measure in ASSIGNMENT.measures]
    assert call is not None
    paths = sorted((ASSIGNMENT.folder / "trained").glob("test_*.py"))
    code = course_code(ASSIGNMENT)

    def of(text: str) -> tuple[Finding, ...]:
        found: list[Any] = []

        def job(checks: Checks) -> None:
            read = program("homework.py", text.encode(), ASSIGNMENT.program_rules)
            student = Student(lambda: host.spawn(ProcessLimits()), read, ASSIGNMENT, seed=5)
            try:
                model = student.build(call.model, **call.arguments)
                model.randomize(0.2)
                inputs = torch.randn((4, 3, 32, 32), generator=torch.Generator().manual_seed(1))
                then = MeasuredModel(model.weights(), inputs, model(inputs))
                found.append(checks.examined_trained(student, then))
            except Exception as error:  # noqa: BLE001 - pytest around the checks would swallow it
                found.append(error)
            finally:
                student.close()

        with contextlib.chdir(ASSIGNMENT.folder / "provided"):  # as in a judge's process
            run_pytest(paths, ASSIGNMENT, code, job)
        if isinstance(found[0], Exception):
            raise found[0]
        found_by_checks: tuple[Finding, ...] = found[0]
        return found_by_checks

    with Host.start("grader.worker", given=given_files(ASSIGNMENT)) as host:
        yield of


def test_the_provided_model_is_recognized(looked_at: Callable[[str], tuple[Finding, ...]]) -> None:
    assert looked_at(SOLVED) == ()


@pytest.mark.parametrize("other", OTHERS)
def test_another_model_goes_to_a_person(looked_at: Callable[[str], tuple[Finding, ...]], other: str) -> None:
    """Although build_model gives the provided one for any other number of classes."""
    body, said = OTHERS[other]
    text = SOLVED + (
        "\n\nfrom handout import VisionTransformer\n\nprovided = build_model\n\n\n"
        f"def build_model(num_classes):\n{body}    return provided(num_classes)\n"
    )
    [finding] = looked_at(text)
    assert said in finding.message
