"""`vit_cifar10` by its public checks alone, as a student has them: they tell mistakes, and nothing else."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import Kind, homework_versions
from grader.domain.analyzed_program import Program, line_at, place_of
from grader.domain.evidence import Finding, Status

ROOT = Path(__file__).parents[2]
RIGHT = ROOT / "tests" / "unseen" / "vit_cifar10" / "correct"
LEAST_TOLD, LEAST_LINES = 134, 114  # of 141 mistakes; with a line within the part
MOST_MESSAGES = 1.1  # of a mistake that is told, on average
OUTSIDE = ("def ", "class ")  # of a part: nothing is marked within it

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forks of a host"),
]


@pytest.fixture(scope="module")
def told() -> dict[tuple[str, str], tuple[Program, list[Finding]]]:
    """(kind, name) of each homework -> its program and what a student reads of it."""
    from grader.judge.course_code import course_code
    from grader.judge.examination import Checks, run_pytest
    from grader.judge.student import Student
    from grader.sandbox.host_client import Host
    from grader.sandbox.process_limits import ProcessLimits

    assignment = read_assignment(ROOT / "reference" / "vit_cifar10")
    public = tuple(replace(spec, shown_by=()) for spec in assignment.checks if spec.public)
    found: dict[tuple[str, str], tuple[Program, list[Finding]]] = {}

    def homeworks() -> Iterator[tuple[str, str, Program, Any]]:
        for one in homework_versions(assignment):
            if one.kind in (Kind.REFERENCE, Kind.FORM, Kind.MISTAKE):
                parts = tuple(one.parts) if one.kind is Kind.MISTAKE else None
                read = program("homework.py", one.source.encode(), assignment.program_rules)
                yield str(one.kind), one.name, read, parts
        for path in sorted(RIGHT.glob("*/homework.*")):
            if path.suffix in (".py", ".ipynb"):
                modules = {each.name: each.read_bytes() for each in path.parent.glob("*.py") if each != path}
                read = program(path.name, path.read_bytes(), assignment.program_rules, modules)
                yield "unseen", path.parent.name, read, None

    def ask(checks: Checks) -> None:
        checks.assignment, checks.code = replace(assignment, checks=public), None
        for kind, name, read, parts in homeworks():
            student = Student(lambda: host.spawn(ProcessLimits()), read, checks.assignment, seed=1)
            try:
                findings = checks.examined(student, components=parts).findings
            finally:
                student.close()
            wrong = [each for each in findings if each.status is not Status.PASSED and not each.because]
            found[kind, name] = read, wrong

    paths = sorted((assignment.folder / "checks").glob("test_*.py"))
    with Host.start("grader.worker") as host:
        run_pytest(paths, assignment, course_code(assignment), ask)
    return found


def test_correct_homework_passes(told: dict[tuple[str, str], tuple[Program, list[Finding]]]) -> None:
    right = {key: wrong for key, (_, wrong) in told.items() if key[0] != str(Kind.MISTAKE)}
    assert len(right) > 40 and sum(kind == "unseen" for kind, _ in right) >= 10
    assert {key: [each.message for each in wrong] for key, wrong in right.items() if wrong} == {}


def test_mistakes_are_told(told: dict[tuple[str, str], tuple[Program, list[Finding]]]) -> None:
    mistakes = {name: found for (kind, name), found in told.items() if kind == str(Kind.MISTAKE) and found[1]}
    assert len(mistakes) >= LEAST_TOLD
    counts = Counter(len(wrong) for _, wrong in mistakes.values())
    assert counts.total() and sum(n * times for n, times in counts.items()) <= MOST_MESSAGES * len(mistakes)
    marked = 0
    for read, wrong in mistakes.values():
        places = [place for each in wrong if (place := place_of(each.where)) is not None]
        marked += any(not line_at(read.source, place).startswith(OUTSIDE) for place in places)
    assert marked >= LEAST_LINES
