"""The table of what is legitimate, mistaken and flagged: its rows, and the one in the documentation."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import forms_table, with_tables
from grader.course.locate import located_course
from grader.domain.errors import UsageError

RULES = """
[policies]
fixed = "flag"                   # a value that is | not learned
stem = "forbid"
[[forbidden]]
parts = ["torch.nn.Identity"]
policy = "flag"
costs = "model"
reason = "A person decides."
[[forbidden]]
parts = ["timm"]
costs = "model"
reason = "No."
"""


def test_the_rows_are_the_courses_own_words(tiny_course: Path) -> None:
    settings = tiny_course / "reference/tiny/assignment.toml"
    settings.write_text(settings.read_text("utf-8") + RULES, encoding="utf-8")
    form = tiny_course / "reference/tiny/forms/added.py"
    text = form.read_text("utf-8").replace('itself."""', 'itself * `a * b`.\n\nPolicy: fixed\n"""')
    form.write_text(text, encoding="utf-8")
    table = forms_table(read_assignment(settings.parent))
    assert table.splitlines()[2:] == [
        r"| The input is added to itself \* `a * b`. | `Doubler` | flagged | `added` |",
        r"| A value that is \| not learned. |  | flagged | `fixed` |",
        "| Stem. |  | mistaken | `stem` |",
        "| It uses `torch.nn.Identity`. A person decides. | `model` | flagged |  |",
        "| The input is tripled. | `Doubler` | mistaken | `tripled` |",
    ]


def test_only_what_stands_between_the_marks_is_replaced(tiny_course: Path) -> None:
    course = located_course(tiny_course, environment={})
    page = "before\n<!-- forms of tiny: made -->\nold\n<!-- end of forms -->\nafter\n"
    renewed = with_tables(page, course)
    assert renewed.startswith("before\n<!-- forms of tiny: made -->\n\n| what") and "old" not in renewed
    assert renewed.endswith("|\n\n<!-- end of forms -->\nafter\n")
    assert with_tables(renewed, course) == renewed
    with pytest.raises(UsageError, match="no assignment 'other'"):
        with_tables(page.replace("tiny", "other"), course)


def test_the_instructors_page_has_todays_table(course_root: Path) -> None:
    page = (course_root / "docs" / "instructor.md").read_text("utf-8")
    advice = "run: python -m grader.cli.manual --tables docs/instructor.md"
    assert "<!-- forms of vit_defects: " in page
    assert page == with_tables(page, located_course(course_root, environment={})), advice
