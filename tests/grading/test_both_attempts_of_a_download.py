"""A download that holds the attempt from before the deadline and the resubmission: both are graded."""

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Grader = Callable[..., Result]
RIGHT = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return 2 * x
"""
WRONG = RIGHT.replace("2 * x", "3 * x")
DEADLINE = "deadline = 2026-01-31T23:59:00+00:00\n"
RULES = "\n[late]\npoints_per_day = 1\n\n[resubmission]\ndays = 7\nregains = 0.5\n"
FIRST, SECOND = ("2026-01-30 12:00:00", WRONG), ("2026-02-02 12:00:00", RIGHT)
Record = dict[str, Any]
Graded = Callable[..., Record]


def export(path: Path, attempts: Sequence[tuple[str, str]]) -> None:
    """Write a download of one student's attempts.

    Args:
        attempts: When each came, and its code.
    """
    with zipfile.ZipFile(path, "w") as archive:
        listed = "".join(
            f"submission_{number}:\n  :submitters:\n  - :sid: '400101204'\n  :created_at: {moment} Z\n"
            for number, (moment, _) in enumerate(attempts, 1)
        )
        archive.writestr("assignment_9_export/submission_metadata.yml", listed)
        for number, (_, code) in enumerate(attempts, 1):
            archive.writestr(f"assignment_9_export/submission_{number}/homework.py", code)


@pytest.fixture
def graded(grader: Grader, tiny_course: Path, tmp_path: Path) -> Graded:
    """Grade a download of attempts; the student's record, with the output of the command."""
    toml = tiny_course / "reference/tiny/assignment.toml"
    without = DEADLINE + toml.read_text("utf-8")

    def once(*attempts: tuple[str, str], rules: str = RULES, extension: str = "") -> Record:
        toml.write_text(without + rules, encoding="utf-8")
        path, out, table = tmp_path / "export.zip", tmp_path / "out", tmp_path / "extensions.csv"
        export(path, attempts)
        table.write_text(f"student_id,deadline\n400101204,{extension}\n", encoding="utf-8")
        own = ("--extensions", table) if extension else ()
        done = grader(
            *("grade", path, "--assignment", "tiny", "--course", tiny_course, "--no-train", "--out", out),
            *own,
        )
        assert done.exit_code == 0, done.output
        (record,) = json.loads((out / "results.json").read_text("utf-8"))["submissions"]
        return {**record, "output": done.output}

    return once


def seen(record: Record) -> tuple[Any, ...]:
    """What the student sees of the rule."""
    return record["total"], record["resubmission"], record["late"]["total_after"], record["late"]["state"]


def is_half_regained(record: Record) -> bool:
    """Whether half of what the first attempt lost came back, and nothing was late."""
    both, total = record["resubmission"], record["total"]
    halfway: bool = total == (both["first"] + both["resubmitted"]) / 2
    nothing_taken: bool = record["late"]["total_after"] == total
    return both["state"] == "counted" and both["first"] < total and halfway and nothing_taken


@pytest.mark.slow
def test_the_resubmission_regains_half_and_a_second_run_changes_nothing(graded: Graded) -> None:
    first, again = graded(FIRST, SECOND), graded(FIRST, SECOND)
    assert is_half_regained(first) and seen(first) == seen(again)


@pytest.mark.slow
def test_a_rule_that_came_after_the_first_grading_finds_the_first_attempt(graded: Graded) -> None:
    """What was graded without the rule alone is examined again, once; whoever grades reads what changed."""
    late = graded(FIRST, SECOND, rules="\n[late]\npoints_per_day = 1\n")
    assert late["late"]["state"] == "late"
    ruled, again, third = (graded(FIRST, SECOND) for _ in range(3))
    assert is_half_regained(ruled) and seen(ruled) == seen(again) == seen(third)
    assert "after lateness -> " in ruled["output"] and "earlier total changed." in ruled["output"]
    assert "earlier total" not in again["output"] and "unchanged submission" in third["output"]


@pytest.mark.slow
def test_what_came_within_the_window_counts_although_something_came_after_it(graded: Graded) -> None:
    too_late = ("2026-02-20 12:00:00", RIGHT + "\n# final\n")
    first, again = graded(FIRST, SECOND, too_late), graded(FIRST, SECOND, too_late)
    # the rest of the record says that something came too late
    assert is_half_regained(first) and seen(first) == seen(again)


@pytest.mark.slow
def test_the_first_attempt_is_the_last_one_before_the_students_own_deadline(graded: Graded) -> None:
    own = "2026-02-03T23:59:00+00:00"
    attempts = (("2026-02-02 12:00:00", RIGHT), ("2026-02-05 12:00:00", WRONG))
    record = graded(*attempts, extension=own)
    both = record["resubmission"]
    assert both["first"] > both["resubmitted"] and record["late"]["total_after"] == both["first"]
    assert seen(graded(*attempts)) == seen(record), "also when the deadline is not mentioned again"


@pytest.mark.slow
def test_the_same_files_handed_in_again_are_not_late(graded: Graded) -> None:
    record = graded(("2026-01-30 12:00:00", RIGHT), ("2026-02-02 12:00:00", RIGHT))
    assert record["late"]["state"] == "in_time" and record["late"]["total_after"] == record["total"]
