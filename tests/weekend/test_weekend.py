"""A head TA's weekend: every upload, mark, export and page ends where it should."""

import csv
import json
from typing import Any

from tests.weekend.conftest import Desk


def results(desk: Desk) -> dict[str, dict[str, Any]]:
    """What results.json says, by student."""
    document = json.loads((desk.out / "results.json").read_text("utf-8"))
    return {one["student_id"]: one for one in document["submissions"]}


def scores(desk: Desk) -> dict[str, dict[str, str]]:
    """The rows of scores.csv, by student."""
    with (desk.out / "scores.csv").open(encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def test_every_upload_is_a_result_of_its_own_student(desk: Desk) -> None:
    found = results(desk)
    assert {student: one["status"] for student, one in found.items()} == desk.made.results()
    assert scores(desk).keys() == found.keys()
    assert len(desk.made.all()) == 61 and len(found) == 61
