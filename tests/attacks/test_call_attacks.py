"""Attacks on the general call: the dishonest part loses its points, the others keep theirs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.domain.evidence import Finding, Status
from grader.judge.examination import Checks, run_pytest
from grader.judge.student import Student
from grader.protocol.link import WorkerProcess

Judged = Callable[[str], Sequence[Finding]]


@pytest.fixture
def judged(tmp_path: Path, spawn: Callable[[], WorkerProcess], attack_modules: Any) -> Judged:
    """The findings about a homework."""
    called = attack_modules("called")
    folder = tmp_path / "calls"
    (folder / "checks").mkdir(parents=True)
    (folder / "assignment.toml").write_text(called.ASSIGNMENT, encoding="utf-8")
    (folder / "checks" / "test_public.py").write_text(called.CHECKS, encoding="utf-8")
    assignment = read_assignment(folder)
    assignment = replace(assignment, limits=replace(assignment.limits, call_seconds=5.0, file_mb=200))

    def of(text: str) -> Sequence[Finding]:
        found: list[Finding] = []

        def use(checks: Checks) -> None:
            analyzed = program("homework.py", text.encode(), assignment.program_rules)
            student = Student(spawn, analyzed, assignment, seed=3)
            try:
                found.extend(checks.examined(student).findings)
            finally:
                student.close()

        run_pytest([folder / "checks" / "test_public.py"], assignment, None, use)
        return found

    return of


@pytest.mark.slow
def test_honest_work_passes(judged: Judged, attack_modules: Any) -> None:
    """What the attacks are put into."""
    assert [finding.status for finding in judged(attack_modules("called").HOMEWORK)] == [Status.PASSED] * 4


def test_a_dishonest_part_costs_itself_alone(judged: Judged, call_attack: Any, attack_modules: Any) -> None:
    """And is told what it does, not what it says of itself."""
    part, homework = call_attack.part, attack_modules("called").HOMEWORK
    honest = re.sub(rf"\n\n\n(class|def) {part}\b.*?(?=\n\n\n|\Z)", "", homework, count=1, flags=re.DOTALL)
    assert part not in honest
    findings = {finding.component: finding for finding in judged(f"{honest}\n\n{call_attack.source}")}
    failed = findings.pop(part)
    assert failed.status is Status.FAILED, failed
    assert re.search(call_attack.says, f"{failed.message} {failed.hint}"), failed.message
    assert {finding.status for finding in findings.values()} == {Status.PASSED}, findings
