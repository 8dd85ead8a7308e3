"""`grader marks`: a sheet goes out, is filled in, comes in, and every total follows."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from openpyxl import load_workbook

from grader.cli import cli
from grader.gradebook import Gradebook

STUDENTS = ("400101201", "400101202", "400101203", "400101204")
Cells = dict[tuple[str, str], dict[str, str]]


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def told(out: Path, student: str) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == student)
    return found


def filled(path: Path, cells: Cells) -> Path:
    """Fill cells in, as a spreadsheet saves them: (student, item) -> column -> text."""
    if path.suffix == ".xlsx":
        book = load_workbook(path)
        [header, *rows] = book.active.iter_rows()
        names = [cell.value for cell in header]
        for row in rows:
            for column, text in cells.get((row[0].value, row[1].value), {}).items():
                row[names.index(column)].value = float(text) if column == "points" else text
        book.save(path)
        return path
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    for row in rows:
        row |= cells.get((row["student_id"], row["item"]), {})
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(buffer.getvalue(), "utf-8")
    return path


@pytest.mark.parametrize("name", ["marks.csv", "marks.xlsx"])
def test_marks_reach_the_report_and_every_total(graded_class: Path, tmp_path: Path, name: str) -> None:
    out, sheet = graded_class, tmp_path / name
    assert said("marks", "export", out, sheet) == f"{sheet}: 37 rows, 37 to be marked.\n"
    untouched = (out / "students/400101202/report.html").read_bytes()
    cells: Cells = {
        ("400101201", "q6"): {
            "points": "4",
            "comment": "Clear; “good” figures.",
            "comment_ids": "position_order_only",
        },
        ("400101201", "q10.class_token"): {"points": "2.5", "comment": "Exactly."},
        ("400101203", "training"): {"points": "9", "comment": "Trained again in the lab."},
    }
    output = said("marks", "import", out, filled(sheet, cells), "--by", "ta2")
    assert output.splitlines() == [
        "400101201: 62 of 65 decided, 35 awaiting -> 66 of 70 decided, 30 awaiting",
        "400101203: 50 of 50 decided, 50 awaiting -> 59 of 65 decided, 35 awaiting",
        "3 marks taken. 2 totals changed.",
    ]
    entry = told(out, "400101201")
    assert (entry["total"], entry["decided"], entry["open_points"]) == (66, 70, 30)
    items = {item["id"]: item for item in entry["items"]}
    assert items["q6"]["comments"][1] == "Clear; “good” figures."
    assert items["q6"]["comments"][0].startswith("Positions do more than number the patches")
    assert [(edit["who"], edit["old"], edit["new"]) for edit in items["q6"]["edits"]] == [("ta2", None, 4)]
    assert items["q10"]["points"] is None and items["q10"]["floor"] == 2.5
    assert items["q10"]["parts"][3]["points"] == 2.5 and "q10" in entry["awaiting"]
    page = re.sub("<[^>]+>", "", (out / "students/400101201/report.html").read_text("utf-8"))
    for text in ("Clear; “good” figures.", "Positions do more than number", "Exactly.", "Marked by ta2."):
        assert text in page
    assert (out / "students/400101202/report.html").read_bytes() == untouched
    table = csv.DictReader(io.StringIO((out / "scores.csv").read_text("utf-8")))
    [row] = [row for row in table if row["student_id"] == "400101201"]
    assert (row["total"], row["decided"], row["q6"], row["q10"]) == ("66", "70", "4", "")
    assert told(out, "400101203")["items"][1]["reason"] == "Changed by ta2."


@pytest.mark.parametrize("name", ["marks.csv", "marks.xlsx"])
def test_our_own_export_changes_nothing(graded_class: Path, tmp_path: Path, name: str) -> None:
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "=Fine, 'really'.")
    said("marks", "export", graded_class, tmp_path / name)
    before = {
        path: path.read_bytes() for path in graded_class.rglob("*.*") if path.suffix in (".json", ".csv")
    }
    assert said("marks", "import", graded_class, tmp_path / name) == "0 marks taken. 0 totals changed.\n"
    assert before == {path: path.read_bytes() for path in before}
    with Gradebook(graded_class) as book:
        assert len(book.edits()) == 1


def test_sheets_of_several_markers_come_in_by_themselves(graded_class: Path, tmp_path: Path) -> None:
    output = said("marks", "export", graded_class, tmp_path / "m.csv", "--split", 2)
    assert output.splitlines() == [
        f"{tmp_path}/m-1.csv: 18 rows, 18 to be marked.",
        f"{tmp_path}/m-2.csv: 19 rows, 19 to be marked.",
    ]
    second = filled(tmp_path / "m-2.csv", {("400101204", "q6"): {"points": "1"}})
    assert said("marks", "import", graded_class, second, "--by", "ta2").endswith("1 total changed.\n")
    first = filled(tmp_path / "m-1.csv", {("400101201", "q6"): {"points": "2"}})
    assert said("marks", "import", graded_class, first, second, "--by", "ta1").endswith(
        "1 mark taken. 1 total changed.\n"
    )


def test_the_later_of_two_marks_tells_both(graded_class: Path, tmp_path: Path) -> None:
    for marker, points in (("ta1", "4"), ("ta2", "5")):
        said("marks", "export", graded_class, tmp_path / f"{marker}.csv")
        filled(tmp_path / f"{marker}.csv", {("400101201", "q6"): {"points": points}})
    assert "changed:" not in said("marks", "import", graded_class, tmp_path / "ta1.csv", "--by", "ta1")
    output = said("marks", "import", graded_class, tmp_path / "ta2.csv", "--by", "ta2")
    assert output.startswith("changed: 400101201 q6: 4 (ta1) -> 5 (ta2)\n")
    [item] = [item for item in told(graded_class, "400101201")["items"] if item["id"] == "q6"]
    assert [(edit["who"], edit["old"], edit["new"]) for edit in item["edits"]] == [
        ("ta1", None, 4),
        ("ta2", 4, 5),
    ]
    assert "4 → 5" in (graded_class / "students/400101201/report.html").read_text("utf-8")


def test_a_lower_mark_lowers_a_total_only_when_that_is_meant(graded_class: Path, tmp_path: Path) -> None:
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "x")
    said("marks", "export", graded_class, tmp_path / "m.csv")
    sheet = filled(
        tmp_path / "m.csv", {("400101201", "q6"): {"points": "3"}, ("400101202", "q6"): {"points": "5"}}
    )
    output = said("marks", "import", graded_class, sheet, code=2)
    assert "A total that students may have seen would fall" in output
    assert "400101201: 66 of 70 decided, 30 awaiting -> 65 of 70 decided, 30 awaiting" in output
    assert "q6" in told(graded_class, "400101202")["awaiting"], "nothing of the sheet was taken"
    said("marks", "import", graded_class, sheet, "--allow-lower")
    assert told(graded_class, "400101201")["total"] == 65


def test_wrong_cells_are_all_listed_and_nothing_is_taken(graded_class: Path, tmp_path: Path) -> None:
    said("marks", "export", graded_class, tmp_path / "m.csv")
    cells: Cells = {
        ("400101201", "q6"): {"points": "4"},
        ("400101201", "q7"): {"points": "6"},
        ("400101202", "q7"): {"points": "x"},
    }
    output = said("marks", "import", graded_class, filled(tmp_path / "m.csv", cells), code=2)
    assert output.splitlines() == [
        "error: m.csv, row 4, column 'points': '6' is not from 0 to 5. Correct it.",
        "m.csv, row 13, column 'points': 'x' is not a number. Write one, or leave the cell empty.",
        "Nothing was taken. Mend these cells and import again.",
    ]
    with Gradebook(graded_class) as book:
        assert book.edits() == ()


def test_a_sheet_with_marks_is_not_overwritten(graded_class: Path, tmp_path: Path) -> None:
    said("marks", "export", graded_class, tmp_path / "m.csv", "--item", "q6", "--open")
    assert "may hold marks that were not imported" in said(
        "marks", "export", graded_class, tmp_path / "m.csv", code=2
    )
    output = said("marks", "export", graded_class, tmp_path / "m.csv", "--force", "--item", "q6")
    assert output.endswith("m.csv: 4 rows, 4 to be marked.\n")
    for student in STUDENTS:
        said("marks", "set", graded_class, student, "q6", "1", "--why", "x")
    arguments = ("marks", "export", graded_class, tmp_path / "n.csv", "--item", "q6", "--open")
    assert "There is nothing to mark" in said(*arguments, code=2)
    assert "Did you mean 'q6'?" in said(
        "marks", "export", graded_class, tmp_path / "n.csv", "--item", "q66", code=2
    )


def test_any_item_can_be_marked_by_itself_and_the_mark_taken_back(graded_class: Path) -> None:
    output = said(
        "marks", "set", graded_class, "400101203", "training", "9", "--why", "The time limit stopped it."
    )
    assert output.splitlines() == [
        "400101203 training: no mark -> 9 (ta1)",
        "400101203: 50 of 50 decided, 50 awaiting -> 59 of 65 decided, 35 awaiting",
        "1 total changed.",
    ]
    page = (graded_class / "students/400101203/report.html").read_text("utf-8")
    assert "The time limit stopped it." in page
    again = (
        "marks",
        "set",
        graded_class,
        "400101203",
        "training",
        "9",
        "--why",
        "The time limit stopped it.",
    )
    assert said(*again).startswith("That is the mark already.")
    back = ("marks", "set", graded_class, "400101203", "training", "none", "--why", "Measured again.")
    assert "would fall" in said(*back, code=2)
    said(*back, "--allow-lower")
    assert "training" in told(graded_class, "400101203")["awaiting"]
    assert "is not from 0 to 15" in said(
        "marks", "set", graded_class, "400101203", "training", "16", "--why", "x", code=2
    )


def test_a_report_that_a_cut_left_behind_is_made_up_for(graded_class: Path) -> None:
    page = graded_class / "students/400101202/report.html"
    page.unlink()
    (graded_class / "results.json").unlink()
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "x")
    assert page.exists() and told(graded_class, "400101201")["total"] == 66
