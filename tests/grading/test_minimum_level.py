"""A course may ask for more isolation than an official grade needs: less grades nothing."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.course.locate import located_course
from grader.domain.errors import SandboxError
from grader.domain.evidence import Attestation
from grader.grading import run
from grader.grading.run import running_parsers


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """A machine that gives a level; what was read on it."""

    def gives(level: str) -> list[str]:
        proved: list[str] = []

        @contextlib.contextmanager
        def parser() -> Iterator[Any]:
            proved.append(level)
            yield SimpleNamespace(attestation=Attestation(level, {}, ("The memory cgroup is not given.",)))

        host = SimpleNamespace(spawn=lambda limits: parser())
        monkeypatch.setattr(run, "Host", SimpleNamespace(start=lambda *a, **k: contextlib.nullcontext(host)))
        return proved

    return gives


def test_less_than_the_course_asks_for_grades_nothing(
    machine: Callable[[str], list[str]], course_root: Path
) -> None:
    course = replace(located_course(course_root, environment={}), minimum_level="strict")
    machine("standard")
    sentence = "asks for the isolation 'strict', and this machine gives 'standard'. The memory cgroup"
    with (
        pytest.raises(SandboxError, match=sentence),
        running_parsers(course, hidden=(), unofficial=False),
    ):
        pytest.fail("nothing may be read")
    proved = machine("strict")
    with running_parsers(course, hidden=(), unofficial=False):
        assert proved == ["strict"]


def test_who_accepts_less_gets_unofficial_grades(
    machine: Callable[[str], list[str]], course_root: Path
) -> None:
    course = replace(located_course(course_root, environment={}), minimum_level="strict")
    machine("standard")
    with running_parsers(course, hidden=(), unofficial=True):
        pass
    with running_parsers(replace(course, minimum_level="standard"), hidden=(), unofficial=False):
        pass
