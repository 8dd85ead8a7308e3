"""The documentation of the console names tests that exist, and keys and options that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/console.md").read_text("utf-8")


def test_each_of_the_twenty_wishes_has_its_test_or_a_reason():
    table = PAGE.partition("## What markers ask for")[2]
    wishes = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(wishes) == 20
    tests, in_browsers = set(), set()
    for folder in ("web", "student_web", "marking", "results"):
        for path in (ROOT / "tests" / folder).glob("test_*.py"):
            text = path.read_text("utf-8")
            names = re.findall(r"^((?:@.*\n(?: .*\n|\)\n)*)*)def (test_\w+)", text, re.MULTILINE)
            tests |= {name for _, name in names}
            whole = "pytestmark = pytest.mark.browser" in text
            in_browsers |= {name for marks, name in names if whole or "pytest.mark.browser" in marks}
    for wish, here in wishes:
        named = set(re.findall(r"`(test_\w+)`", here))
        assert named <= tests, wish
        assert named & in_browsers or re.match(r" (not here|no test in a browser): ", here), wish


def test_the_keys_are_those_of_the_script():
    script = (ROOT / "grader/web/static/console.js").read_text("utf-8")
    shown = (ROOT / "grader/web/templates/console.html.j2").read_text("utf-8")
    for key in "pcbfs":
        assert re.search(rf"^ +.*\b{key}: \(\)", script, re.MULTILINE), key
        assert f"<kbd>{key}</kbd>" in shown and re.search(rf"\b{key}\b", PAGE.partition("## Keys")[2])
