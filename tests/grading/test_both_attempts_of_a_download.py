"""A download that holds the attempt from before the deadline and the resubmission: both are graded."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

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
LIST = "".join(
    f"submission_{number}:\n  :submitters:\n  - :sid: '400101204'\n  :created_at: {moment} Z\n"
    for number, moment in ((1, "2026-01-30 12:00:00"), (2, "2026-02-02 12:00:00"))
)


@pytest.mark.slow
def test_the_resubmission_regains_half_and_a_second_run_changes_nothing(
    grader: Grader, tiny_course: Path, tmp_path: Path
) -> None:
    toml = tiny_course / "reference/tiny/assignment.toml"
    toml.write_text(DEADLINE + toml.read_text("utf-8") + RULES, encoding="utf-8")
    path, out = tmp_path / "export.zip", tmp_path / "out"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("assignment_9_export/submission_metadata.yml", LIST)
        archive.writestr("assignment_9_export/submission_1/homework.py", WRONG)
        archive.writestr("assignment_9_export/submission_2/homework.py", RIGHT)
    found = []
    for _ in range(2):
        done = grader(
            *("grade", path, "--assignment", "tiny", "--course", tiny_course, "--no-train", "--out", out)
        )
        assert done.exit_code == 0, done.output
        (record,) = json.loads((out / "results.json").read_text("utf-8"))["submissions"]
        found.append((record["total"], record["resubmission"], record["late"]["state"]))
    assert found[0] == found[1]
    total, both, state = found[0]
    assert both["state"] == "counted" and state == "in_time"
    assert both["first"] < total < both["resubmitted"]
    assert total == (both["first"] + both["resubmitted"]) / 2
