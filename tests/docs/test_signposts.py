"""The pages that show the way: the changelog, and where to report a hole."""

import re
from pathlib import Path

from PIL import Image

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
    assert not versions or versions[0].startswith(f"[{__version__}]")
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= KINDS


def test_the_readme_begins_with_a_report_that_is_small() -> None:
    beginning = (ROOT / "README.md").read_text("utf-8").partition("```")[0]
    assert re.search(r"!\[[^\]]+\]\(docs/report\.png\)", beginning), "with words for whoever does not see it"
    with Image.open(ROOT / "docs/report.png") as picture:
        assert picture.format == "PNG" and not picture.info.keys() - {"dpi", "gamma", "srgb"}
        assert min(picture.size) > 600
    assert (ROOT / "docs/report.png").stat().st_size < 200_000


def test_there_is_a_place_for_an_address_to_report_to() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert len(re.findall(r"^Report to: \S.+$", text, re.MULTILINE)) == 1
    assert "SECURITY.md" in (ROOT / "docs/security.md").read_text("utf-8")
    assert "SECURITY.md" in (ROOT / "README.md").read_text("utf-8")
