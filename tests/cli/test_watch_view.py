"""What `grader check --watch` shows: where to go on, and what the last save changed."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from grader.cli.check_watch import WatchView
from grader.cli.terminal_page import Page
from grader.domain.analyzed_program import ForbiddenUse, Place
from grader.domain.assignment import CheckSpec
from grader.domain.evidence import Blame, Finding, Status
from grader.students.own_check import LocalCheck

SPECS = tuple(
    CheckSpec(name, component, f"Title {name}.")
    for name, component in (
        ("a", "PreNorm"),
        ("b", "Attention"),
        ("c", "Attention"),
        ("d", "ViT"),
        ("e", "ViT"),
    )
)
LAST = "5 of 5 public checks pass. `grader check` shows what would be trained, and tries it."


@pytest.fixture
def written():
    return io.StringIO()


@pytest.fixture
def view(assignment, written):
    return WatchView(Path("homework.py"), replace(assignment, checks=SPECS), Page(written), details=False)


@pytest.fixture
def shown(view, analyzed, written):
    """The lines that are shown of a check in which these fail: `shown("a", "d")`."""

    def of(*failed: str, **fields: object) -> list[str]:
        findings = tuple(
            replace(
                Finding(spec.id, spec.component, spec.title, Status.PASSED),
                **(
                    {"status": Status.FAILED, "blame": Blame.STUDENT, "message": f"Why {spec.id}."}
                    if spec.id in failed
                    else {}
                ),
            )
            for spec in SPECS
        )
        view.clear()
        view.show(LocalCheck(replace(analyzed("x = 1\n"), **fields), findings, None, (), ()))
        lines = written.getvalue().splitlines()
        written.seek(0)
        written.truncate()
        return lines

    return of


def test_the_first_part_that_fails_is_shown_in_full_and_every_other_in_a_line(shown):
    title, *lines = shown("b", "e")
    assert title.startswith("homework.py: ")
    assert lines == [
        "",
        "Attention",
        "  ✗ Title b.",
        "      Why b.",
        "  ✓ Title c.",
        "",
        "  ✓ PreNorm",
        "  ✗ ViT (1 of 2): Title e.",
        "",
        "✗ 3 of 5 public checks pass.",
    ]


def test_what_was_fixed_and_what_broke_is_told_since_the_last_time(shown):
    assert "since the last time" not in "\n".join(shown("a", "b")), "there is no last time"
    lines = shown("b", "d")
    changes = lines[lines.index("Fixed since the last time") :]
    assert changes[:5] == [
        "Fixed since the last time",
        "  ✓ Title a.",
        "",
        "Broken since the last time",
        "  ✗ Title d.",
    ]
    assert "since the last time" not in "\n".join(shown("b", "d")), "nothing changed"
    assert shown()[-1] == f"✓ {LAST}"


def test_many_changes_are_counted(shown, monkeypatch):
    monkeypatch.setattr("grader.cli.check_watch.MOST_CHANGES", 2)
    shown()
    lines = shown("a", "b", "c", "d")
    assert lines[lines.index("Broken since the last time") + 1 :][:3] == [
        "  ✗ Title a.",
        "  ✗ Title b.",
        "    and 2 more",
    ]


def test_a_part_that_is_not_allowed_is_no_success(shown):
    use = ForbiddenUse("timm", "timm.create_model", Place("homework.py", 3), ("ViT",))
    assert shown(forbidden=(use,))[-1] == (
        "✗ 5 of 5 public checks pass. 1 use of what is not allowed: `grader check` shows where."
    )
    assert shown(forbidden=(replace(use, reached_from=()),))[-1] == f"✓ {LAST}"


def test_only_a_real_terminal_is_cleared(view, monkeypatch):
    cleared = []
    monkeypatch.setattr(view._page.console, "clear", lambda: cleared.append(True))
    view.clear()
    assert not cleared
    monkeypatch.setattr(Page, "live", True)
    view.clear()
    assert cleared
