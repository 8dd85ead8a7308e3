"""The pages that show the way: the changelog, and where to report a hole."""

import re
from pathlib import Path

from grader import __version__

ROOT = Path(__file__).parents[2]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_changelog_is_one() -> None:
    """Unreleased first, then versions with a date, newest first, down to the one that this is."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    [first, *versions] = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert first == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", each) for each in versions]
    assert all(released), "a version is written as: ## [1.2.3] - 2026-01-31"
    numbers = [tuple(map(int, each[1].split("."))) for each in released if each]
    assert numbers == sorted(numbers, reverse=True)
    assert not numbers or numbers[0] == tuple(int(part) for part in __version__.split("."))
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= KINDS


def test_there_is_a_place_for_an_address_to_report_to() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert len(re.findall(r"^Report to: \S.+$", text, re.MULTILINE)) == 1
    assert "SECURITY.md" in (ROOT / "docs/security.md").read_text("utf-8")
    assert "SECURITY.md" in (ROOT / "README.md").read_text("utf-8")
