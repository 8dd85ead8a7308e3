"""What `grader check` says last of homeworks whose training is written in many ways."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.cli.verdict_view import verdict
from grader.course.student_template import write_template
from grader.domain.analyzed_program import Program
from grader.domain.formatting import SPACE
from grader.students.homework import local_assignment
from grader.students.own_check import local_check
from grader.students.prospect import prospect
from tests.students.variants import TRAININGS, Variant


@pytest.fixture(scope="module")
def desk(course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student's folder."""
    folder = tmp_path_factory.mktemp("desk")
    write_template(course_root / "reference" / "vit_defects", folder, course_root / "datasets")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("variant", TRAININGS, ids=[variant.name for variant in TRAININGS])
def test_the_last_line_is_true(
    variant: Variant, desk: Path, solved: str, warm_workers: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk / "homework.py"
    path.write_text(variant.source(solved), encoding="utf-8")
    monkeypatch.chdir(desk)
    monkeypatch.setattr("grader.students.own_check.CHECK_SECONDS", 120.0)  # others may use the machine
    local = local_assignment((desk,))
    found = local_check(path, local)
    known = prospect(local.assignment, found)
    said = verdict(found, known).replace(SPACE, " ")
    assert variant.last in said and int(known.outcome) == variant.code, said


@pytest.mark.slow
def test_every_variant_is_read_as_something_that_trains(
    solved: str, analyzed: Callable[[str], Program]
) -> None:
    for variant in TRAININGS:
        script = analyzed(variant.source(solved)).script
        assert not script.missing, (variant.name, script.missing)
