"""Finds drawn values that students cannot know: nothing of what they are handed depends on them.

A misspelled mark is refused when files are filled; a mark that was forgotten is found here. It compares files
that are handed out for different choices. It decides nothing about the checks, which may use a value, too.

Tests: tests/validation/test_unseen_values.py
"""

from collections.abc import Mapping
from pathlib import Path

from grader.course.student_template import HandedOutCopy, student_files
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value, first_choices

_SEEN = ("homework.py", "README.md")


def unseen_values(assignment: Assignment, datasets: Path) -> tuple[str, ...]:
    """A sentence on each drawn value that makes no difference to what students see.

    Args:
        datasets: Where the course's data sets are.
    """
    first = first_choices(assignment.variant)

    def seen(values: Mapping[str, Value]) -> list[str]:
        files = student_files(assignment.folder, datasets, HandedOutCopy(values=dict(values)))
        return [files[name] for name in _SEEN]

    usual = seen(first) if assignment.variant else []
    return tuple(
        f"assignment.toml: [variant.{value.name}] draws what no student sees. Mark an assignment in "
        f"solution.py, as in 'HEADS = 4  # variant: {value.name}', write {{{{{value.name}}}}} in "
        "student_readme.md, or remove the table."
        for value in assignment.variant
        if all(seen({**first, value.name: choice}) == usual for choice in value.choices[1:])
    )
