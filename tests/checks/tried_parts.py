"""What the checks find in a homework of which one part was written anew."""

from collections.abc import Mapping
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, Kind
from grader.course.locate import located_course
from grader.domain.evidence import Finding
from grader.validation.trials import Trial, outcomes
from tests.warm_hosts import WarmHosts

ROOT = Path(__file__).parents[2]


def findings_in(
    folder: Path, homeworks: Mapping[str, tuple[str, str]], warm_hosts: WarmHosts
) -> dict[str, tuple[Finding, ...]]:
    """The findings about the part of each homework, by its name.

    Args:
        folder: Of the assignment.
        homeworks: Name -> (the part, the source of the homework).
    """
    planned = [
        Trial(HomeworkVersion(Kind.FORM, name, name, source), (part,))
        for name, (part, source) in homeworks.items()
    ]
    with warm_hosts.shared():
        course = located_course(ROOT, environment={})
        found = outcomes(course, read_assignment(folder), planned, jobs=2)
    assert {each.version.name: each.fault for each in found if each.fault} == {}
    return {each.version.name: each.findings for each in found}
