"""A check that passed and that a person will take a look at: what is said of it on the terminal."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.cli.class_view import print_results
from grader.cli.homework_view import CheckView
from grader.domain.assignment import Assignment
from grader.domain.evidence import Blame, Evidence, Finding, Status
from grader.domain.submission_result import Result
from grader.reports.whole_class.class_overview import class_overview
from grader.scoring import score

REMARK = "The positions are fixed; the handout asks for learnable ones."


def passed(message: str = "") -> Finding:
    """A check of ViT that passed."""
    policy = "fixed_positions" if message else None
    return Finding("vit_adds_positions", "ViT", "Positions.", Status.PASSED, message=message, policy=policy)


def test_a_students_own_check_says_who_has_a_look_and_that_it_is_free(
    assignment: Assignment, capsys: pytest.CaptureFixture[str]
) -> None:
    for found in (passed(), passed(REMARK)):
        with CheckView(Path("homework.py"), assignment) as view:
            view.finding(found)
        said = " ".join(capsys.readouterr().out.split())
        told = f" A person will take a look: {REMARK} It costs no points." if found.message else ""
        assert said.endswith(f"ViT ✓ Positions.{told}")


def test_a_result_without_mistakes_names_what_is_to_be_looked_at_first(
    assignment: Assignment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake goes before it."""
    monkeypatch.setenv("COLUMNS", "200")
    mistake = Finding(
        "evaluates", "evaluate", "It counts.", Status.FAILED, Blame.STUDENT, None, "It is wrong."
    )
    results = []
    for student_id, found in (
        ("400101204", (passed(REMARK),)),
        ("400101205", (passed(REMARK), mistake)),
        ("400101206", (passed(),)),
    ):
        when = datetime(2026, 1, 31, tzinfo=UTC)
        evidence = Evidence(student_id, assignment.id, "", when, findings=found)
        results.append(Result(evidence, score(assignment, evidence)))
    overview = class_overview(assignment, [(one.evidence, one.score) for one in results])
    print_results(results, overview, Path("out"), 1.0)
    lines = capsys.readouterr().out.splitlines()
    first, second, third = (line.strip() for line in lines if "40010120" in line)
    assert first.endswith(REMARK)
    assert second.endswith("It is wrong.")
    assert third.endswith("—")
