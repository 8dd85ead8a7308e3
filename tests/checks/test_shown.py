"""What hidden checks of `vit_defects` show, its public checks find too: nothing that fails is passed over."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, homework_versions
from grader.domain.assignment import Assignment
from grader.domain.evidence import Status

FOLDER = Path(__file__).parents[2] / "reference" / "vit_defects"
# known by their files: to compose them takes seconds, which every run of tests would wait for
NAMES = [
    "reference",
    *(path.stem for kind in ("forms", "mistakes") for path in sorted(FOLDER.glob(f"{kind}/*.py"))),
]


@pytest.fixture(scope="module")
def versions() -> dict[str, HomeworkVersion]:
    """All that have code, by their names."""
    found = homework_versions(read_assignment(FOLDER))
    return {version.name: version for version in found if version.source}


@pytest.fixture(scope="module")
def findings(examined: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """The findings about a version's parts by the checks' ids; `alone`: what others show is run as well."""

    def of(assignment: Assignment, version: HomeworkVersion, *, alone: bool) -> dict[str, Any]:
        specs = [replace(spec, shown_by=()) if alone else spec for spec in assignment.checks]
        components = version.parts or tuple(part.name for part in assignment.components)
        found = examined(version.source, components=components, specs=specs)
        return {finding.check: finding for finding in found.findings}

    return of


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_passes_when_it_is_run(
    name: str,
    versions: Mapping[str, HomeworkVersion],
    assignment: Assignment,
    findings: Callable[..., dict[str, Any]],
) -> None:
    version = versions[name]
    graded = findings(assignment, version, alone=False)
    shown = [
        check for check, one in graded.items() if one.status is Status.PASSED and one.because is not None
    ]
    tried = findings(assignment, version, alone=True) if shown else {}
    assert {check: tried[check].message for check in shown if tried[check].status is not Status.PASSED} == {}


@pytest.mark.slow
def test_most_of_the_public_checks_are_shown(
    versions: Mapping[str, HomeworkVersion],
    assignment: Assignment,
    findings: Callable[..., dict[str, Any]],
) -> None:
    """Where everything is right: what this saves is most of the public checks' time."""
    graded = findings(assignment, versions["reference"], alone=False)
    public = [spec.id for spec in assignment.checks if spec.public and spec.id in graded]
    assert len([check for check in public if graded[check].because]) >= 0.75 * len(public)
