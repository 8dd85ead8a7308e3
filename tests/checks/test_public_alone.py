"""Two assignments by their public checks alone, as students have them: they tell mistakes, and nothing else.

The first assignment's are in `test_public_lines.py`.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import Kind, homework_versions
from grader.domain.analyzed_program import Program, line_at, place_of
from grader.domain.evidence import Finding
from tests.checks.test_public_lines import BEGINS, MOST_MESSAGES, unfolded
from tests.unseen.build import LEFT_TO_A_PERSON

ROOT = Path(__file__).parents[2]
# assignment -> mistakes that are not told; mistakes for which a line within the part is marked
EXPECTED = {
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
    """All versions but the template, and right work that was written without sight of the checks."""
    for one in homework_versions(assignment):
        if one.kind in (Kind.REFERENCE, Kind.FORM, Kind.MISTAKE):
            read = program("homework.py", one.source.encode(), assignment.program_rules)
            yield Read(one.name, one.kind, read, tuple(one.parts) if one.kind is Kind.MISTAKE else None)
    for path in sorted((ROOT / "tests" / "unseen" / assignment.id / "correct").glob("*/homework.*")):
        if path.suffix in (".py", ".ipynb"):
            modules = {each.name: each.read_bytes() for each in path.parent.glob("*.py") if each != path}
            read = program(path.name, path.read_bytes(), assignment.program_rules, modules)
            yield Read(path.parent.name, "unseen", read, None)


@pytest.fixture(scope="module", params=EXPECTED)
def told(request: pytest.FixtureRequest) -> tuple[str, list[Read]]:
    """The assignment, and all its homeworks."""
    from grader.judge.course_code import course_code
    from grader.judge.examination import Checks, run_pytest
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
    assert set(wrong) == set(LEFT_TO_A_PERSON.get(told[0], {})), wrong
    assert all(message.startswith("A person must look") for each in wrong.values() for message in each)


def test_mistakes_are_told(told: tuple[str, list[Read]]) -> None:
    assignment, found = told
    untold, least_lines = EXPECTED[assignment]
    mistakes = [one for one in found if one.kind == Kind.MISTAKE]
    assert {one.name for one in mistakes if not one.wrong} == untold
    told_ones = [one for one in mistakes if one.wrong]
    assert sum(len(one.wrong) for one in told_ones) <= MOST_MESSAGES * len(told_ones)
    marked = 0
    for one in told_ones:
        places = [place for each in one.wrong if (place := place_of(each.where)) is not None]
        marked += any(not line_at(one.program.source, place).startswith(BEGINS) for place in places)
    assert marked >= least_lines
