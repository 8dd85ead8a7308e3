"""Odd versions of a homework: one part gives what nobody plans for."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, Kind, homework_versions, reference_files
from grader.course.odd_versions import odd_versions
from grader.domain.assignment import Assignment

REFERENCE = Path(__file__).parents[2] / "reference"
ALL = 10_000


@pytest.fixture(scope="module", params=sorted(path.name for path in REFERENCE.iterdir()))
def every(request: pytest.FixtureRequest) -> tuple[Assignment, tuple[HomeworkVersion, ...]]:
    """An assignment and all of its odd versions."""
    assignment = read_assignment(REFERENCE / request.param)
    [reference] = [one for one in homework_versions(assignment) if one.kind is Kind.REFERENCE]
    return assignment, odd_versions(assignment, reference, ALL)


def test_every_part_is_odd_in_many_ways(every: tuple[Assignment, tuple[HomeworkVersion, ...]]) -> None:
    assignment, versions = every
    counts = Counter(part for version in versions for part in version.parts)
    assert set(counts) == {component.name for component in assignment.components}
    assert min(counts.values()) > 20
    assert len({version.name for version in versions}) == len(versions)


def test_every_version_can_be_read(every: tuple[Assignment, tuple[HomeworkVersion, ...]]) -> None:
    """Its code is Python; a file that is handed in is another one. Few are read, as each is long."""
    assignment, versions = every
    files = reference_files(assignment)
    for number, version in enumerate(versions):
        if number % 16 == 0:
            ast.parse(version.source)
        if version.changes:
            [role] = version.parts
            assert version.handed_in(files)[role] != files[role], version.name


def test_a_sample_takes_each_part_in_turn(every: tuple[Assignment, tuple[HomeworkVersion, ...]]) -> None:
    assignment, versions = every
    [reference] = [one for one in homework_versions(assignment) if one.kind is Kind.REFERENCE]
    count = 2 * len(assignment.components)
    sample = odd_versions(assignment, reference, count)
    assert set(Counter(part for version in sample for part in version.parts).values()) == {2}
    assert sample == versions[:count]
