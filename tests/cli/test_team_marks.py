"""A team that handed in together is marked once, and whoever was marked alone keeps that mark."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from openpyxl import load_workbook

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.domain.submission import Origin
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.results.class_files import write_class
from grader.results.current_state import results_now

WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
A, B, C = TEAM = ("400101356", "400101357", "400101399")
ELSEWHERE = "400101358"  # of the team too, and with a submission of one's own


@pytest.fixture
def team_class(
    graded_class: Path,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    course_root: Path,
) -> Path:
    """The class, and a team of three; a fourth member handed in something else."""
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)
    team = tuple(sorted((*TEAM, ELSEWHERE)))
    with Gradebook(graded_class) as book:
        keeper = Keeper(assignment, book, graded_class, "ta1")
        for student in team:
            digest = "own" if student == ELSEWHERE else "shared"
            person = Origin(f"k{student}", student, student, person=f"Name {student[-3:]}")
            made = class_evidence(student, team=team, origin=person)
            keeper.kept(_with_digest(made, digest), {}, WHEN)
        write_class(assignment, results_now(assignment, book.snapshot()), graded_class, WHEN)
    return graded_class


def _with_digest(evidence: Any, digest: str) -> Any:
    from dataclasses import replace

    return replace(evidence, submission_digest=digest)


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def marks(out: Path, item: str = "q6") -> dict[str, float | None]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    return {
        one["student_id"]: next(line["points"] for line in one["items"] if line["id"] == item)
        for one in document["submissions"]
        if one["student_id"].startswith("4001013")
    }


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))


def filled(path: Path, points: dict[str, str], item: str = "q6") -> Path:
    rows = rows_of(path)
    for row in rows:
        if row["item"] == item and row["student_id"] in points:
            row["points"] = points[row["student_id"]]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(buffer.getvalue(), "utf-8")
    return path


def test_a_team_has_one_row_for_each_item(team_class: Path, tmp_path: Path) -> None:
    said("marks", "export", team_class, tmp_path / "m.csv", "--item", "q6")
    rows = {row["student_id"]: row for row in rows_of(tmp_path / "m.csv")}
    assert A in rows and ELSEWHERE in rows and not rows.keys() & {B, C}
    assert rows[A]["note"] == f"team: {A}, {B}, {C}" and rows[ELSEWHERE]["note"] == ""
    said("marks", "export", team_class, tmp_path / "m.xlsx", "--item", "q6", "--names")
    book = load_workbook(tmp_path / "m.xlsx")
    assert any(row[-1].value == "Name 356, Name 357, Name 399" for row in book.active.iter_rows())


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_a_split_keeps_a_team_together(team_class: Path, tmp_path: Path, count: int) -> None:
    said("marks", "set", team_class, B, "q7", "1", "--why", "Alone.", "--alone")  # rows of their own
    said("marks", "export", team_class, tmp_path / "m.csv", "--split", count)
    shares = [{row["student_id"] for row in rows_of(path)} for path in sorted(tmp_path.glob("m-*.csv"))]
    assert len(shares) == count and all(shares)
    assert sum(bool(share & {A, B}) for share in shares) == 1


def test_a_row_counts_for_the_whole_team(team_class: Path, tmp_path: Path) -> None:
    said("marks", "export", team_class, tmp_path / "m.csv")
    output = said("marks", "import", team_class, filled(tmp_path / "m.csv", {A: "4"}))
    assert output.endswith("3 marks taken, 2 of them for others of a team. 3 totals changed.\n")
    assert marks(team_class) == {A: 4, B: 4, C: 4, ELSEWHERE: None}
    assert "q6: 4. marked in m.csv" in said("history", team_class, C)
    assert "0 marks taken" in said("marks", "import", team_class, tmp_path / "m.csv")
    said("marks", "import", team_class, filled(tmp_path / "m.csv", {A: "none"}))
    assert marks(team_class) == {A: None, B: None, C: None, ELSEWHERE: None}


def test_whoever_was_marked_alone_keeps_that_and_it_is_told(team_class: Path, tmp_path: Path) -> None:
    said("marks", "set", team_class, A, "q6", "4", "--why", "x")
    assert marks(team_class) == {A: 4, B: 4, C: 4, ELSEWHERE: None}
    said("marks", "set", team_class, B, "q6", "1", "--why", "Did not take part.", "--alone", "--by", "head")
    assert marks(team_class) == {A: 4, B: 1, C: 4, ELSEWHERE: None}
    said("marks", "export", team_class, tmp_path / "m.csv")
    output = said("marks", "import", team_class, filled(tmp_path / "m.csv", {A: "5"}))
    assert f"{B}, of the same team as {A}, keeps 1 for 'q6', which head gave to {B} alone." in output
    assert marks(team_class) == {A: 5, B: 1, C: 5, ELSEWHERE: None}
    assert f"keeps 1 for 'q6', which head gave to {B} alone" in said(
        "marks", "set", team_class, C, "q6", "3", "--why", "y"
    )
    assert marks(team_class) == {A: 3, B: 1, C: 3, ELSEWHERE: None}


def test_a_sheet_that_was_exported_with_a_row_for_each_member(team_class: Path, tmp_path: Path) -> None:
    """Sheets of older versions, and rows that somebody added."""
    sheet = tmp_path / "m.csv"
    sheet.write_text(f"student_id,item,points\n{A},q6,5\n{B},q6,4\n{C},q6,\n")
    output = said("marks", "import", team_class, sheet)
    assert f"{A} and {B} handed in together, and have 5 and 4 for 'q6'." in output
    assert marks(team_class) == {A: 5, B: 4, C: 5, ELSEWHERE: None}


def test_a_growing_sheet_undoes_no_correction_of_a_team(team_class: Path, tmp_path: Path) -> None:
    said("marks", "export", team_class, tmp_path / "m.csv")
    said("marks", "import", team_class, filled(tmp_path / "m.csv", {A: "5"}))
    said("marks", "set", team_class, C, "q6", "2", "--why", "x", "--by", "head")
    assert marks(team_class) == {A: 2, B: 2, C: 2, ELSEWHERE: None}
    assert "5 was imported before; head gave 2 since: left." in said(
        "marks", "import", team_class, tmp_path / "m.csv"
    )
    assert marks(team_class) == {A: 2, B: 2, C: 2, ELSEWHERE: None}


def test_a_row_that_lowers_a_released_grade_is_refused_for_the_whole_team(
    team_class: Path, tmp_path: Path
) -> None:
    said("marks", "set", team_class, A, "q6", "5", "--why", "x")
    said("publish", team_class, "--to", tmp_path / "published", "--partial")
    said("marks", "export", team_class, tmp_path / "m.csv")
    output = said("marks", "import", team_class, filled(tmp_path / "m.csv", {A: "4"}), code=1)
    assert "1 row was left out" in output and all(f"q6: {one}: 67 of 70" in output for one in TEAM)
    assert marks(team_class) == {A: 5, B: 5, C: 5, ELSEWHERE: None}
