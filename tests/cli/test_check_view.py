"""The findings of `grader check` on the terminal: each cause once, and what follows from it below."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.analysis import program
from grader.cli.homework_view import CheckView
from grader.cli.verdict_view import unresolved_notes
from grader.domain.assignment import Assignment, CheckSpec
from grader.domain.evidence import Blame, Finding, Status

SPECS = tuple(
    CheckSpec(name, component, f"Title {name}.")
    for name, component in (("a", "ViT"), ("b", "ViT"), ("c", "PreNorm"), ("d", "ViT"), ("e", "ViT"))
)


def found(name: str, message: str = "", because: str | None = None) -> Finding:
    """A finding, failed if there is a message."""
    spec = next(spec for spec in SPECS if spec.id == name)
    passed = Finding(name, spec.component, spec.title, Status.PASSED)
    if not message:
        return passed
    return replace(passed, status=Status.FAILED, blame=Blame.STUDENT, message=message, because=because)


FINDINGS = (
    found("a", "It is random."),
    found("b", "Another shape.", "a"),
    found("c"),
    found("d"),
    found("e", "It is random."),
)


@pytest.fixture
def small(assignment: Assignment) -> Assignment:
    """The assignment with few checks, those of ViT around another part's."""
    return replace(assignment, checks=SPECS)


def test_a_cause_is_told_once_with_what_follows_from_it(
    small: Assignment, capsys: pytest.CaptureFixture[str]
) -> None:
    with CheckView(Path("homework.py"), small) as view:
        for each in FINDINGS:
            view.finding(each)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "",
        "PreNorm",
        "  ✓ Title c.",
        "",
        "ViT",
        "  ✗ Title a.",
        "      It is random.",
        "      2 more checks fail for this reason:",
        "        Title b.",
        "        Title e.",
        "  ✓ Title d.",
    ]


def test_a_part_is_shown_when_its_last_check_is_made_or_nothing_more_comes(
    small: Assignment, capsys: pytest.CaptureFixture[str]
) -> None:
    with CheckView(Path("homework.py"), small) as view:
        for each in FINDINGS[:3]:
            view.finding(each)
        shown = capsys.readouterr().out
        assert "PreNorm" in shown and "ViT" not in shown
    assert "Title a." in capsys.readouterr().out


def test_a_name_that_is_not_there_has_its_reason(assignment: Assignment) -> None:
    """A line that binds it is not executed for the checks; or there is no such line."""
    text = """
train_set = datasets.ImageFolder("data/train")
total = len(train_set)


def evaluate(model, data_loader, loss_history):
    return total + undefined
"""
    read = program("homework.py", text.encode(), assignment.program_rules)
    assert sorted(unresolved_notes(read)) == [
        "`total`, which `evaluate` uses, is bound at homework.py:3, which the checks do not execute: "
        "it needs `train_set`, which is not executed.",
        "`undefined`, which `evaluate` uses, is defined nowhere in the file.",
    ]
