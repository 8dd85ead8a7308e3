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
from grader.domain.edit import Released
from grader.domain.errors import UsageError
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
    for text in (
        "Clear; “good” figures.",
        "Positions do more than number",
        "Exactly.",
        "Marked by a person.",
    ):
        assert text in page
    assert (out / "students/400101202/report.html").read_bytes() == untouched
    table = csv.DictReader(io.StringIO((out / "scores.csv").read_text("utf-8")))
    [row] = [row for row in table if row["student_id"] == "400101201"]
    assert (row["total"], row["decided"], row["q6"], row["q10"]) == ("66", "70", "4", "")
    assert told(out, "400101203")["items"][1]["reason"] == "Changed by a person."


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
    page = (graded_class / "students/400101201/report.html").read_text("utf-8")
    assert "4 → 5" not in page and "ta1" not in page and "ta2" not in page


# --- what was released ------------------------------------------------------------------------------------


def released(out: Path, to: Path) -> None:
    said("publish", out, "--to", to, "--partial")


def test_what_was_never_released_was_never_told(graded_class: Path, tmp_path: Path) -> None:
    """A marker corrects a slip of the weekend: nobody has seen the grade."""
    said("marks", "set", graded_class, "400101201", "q6", "5", "--why", "x")
    said("marks", "export", graded_class, tmp_path / "m.csv")
    sheet = filled(tmp_path / "m.csv", {("400101201", "q6"): {"points": "4.5", "comment": "y"}})
    assert said("marks", "import", graded_class, sheet).endswith("1 mark taken. 1 total changed.\n")
    said("marks", "set", graded_class, "400101201", "q6", "none", "--why", "Another student's.")
    assert "q6" in told(graded_class, "400101201")["awaiting"]


def test_a_lowered_row_refuses_itself_alone(graded_class: Path, tmp_path: Path) -> None:
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "x")
    released(graded_class, tmp_path / "published")
    said("marks", "export", graded_class, tmp_path / "m.csv")
    cells: Cells = {
        ("400101201", "q6"): {"points": "3"},
        ("400101201", "report_quality"): {"points": "0"},
        ("400101202", "q6"): {"points": "5"},
    }
    sheet = filled(tmp_path / "m.csv", cells)
    output = said("marks", "import", graded_class, sheet, code=1)
    assert "2 marks taken. 2 totals changed." in output
    assert output.splitlines()[-3] == "1 row was left out: a grade that was released would fall."
    assert output.splitlines()[-2].startswith(
        "  m.csv, row 3, q6: 400101201: 66 of 70 decided, 30 awaiting -> 65 of 70 decided, 30 awaiting "
        "(released: 66 on "
    )
    assert "--allow-lower" in output.splitlines()[-1]
    assert (told(graded_class, "400101201")["total"], told(graded_class, "400101202")["awaiting"]) == (
        66,
        ["report_quality", "q7", "q8", "q9", "q10"],
    )
    output = said("marks", "import", graded_class, sheet, "--allow-lower")
    assert output.startswith("changed: 400101201 q6: 4 (ta1) -> 3 (ta1)\n") and "1 mark taken." in output
    assert told(graded_class, "400101201")["total"] == 65


def test_rows_that_together_take_nothing_are_taken(graded_class: Path, tmp_path: Path) -> None:
    """One mark falls and another rises: the grade does not fall."""
    for item in ("q6", "q7"):
        said("marks", "set", graded_class, "400101201", item, "3", "--why", "x")
    released(graded_class, tmp_path / "published")
    said("marks", "export", graded_class, tmp_path / "m.csv")
    sheet = filled(
        tmp_path / "m.csv", {("400101201", "q6"): {"points": "2"}, ("400101201", "q7"): {"points": "4"}}
    )
    assert "2 marks taken. 0 totals changed." in said("marks", "import", graded_class, sheet)


def test_rows_that_only_together_fall_below_what_was_released_are_refused(
    graded_class: Path, tmp_path: Path
) -> None:
    released(graded_class, tmp_path / "published")
    for item in ("q6", "q7"):
        said("marks", "set", graded_class, "400101201", item, "1", "--why", "x")
    said("marks", "set", graded_class, "400101201", "training", "11", "--why", "x")  # 63; 62 were released
    said("marks", "export", graded_class, tmp_path / "m.csv")
    sheet = filled(
        tmp_path / "m.csv", {("400101201", "q6"): {"points": "0"}, ("400101201", "q7"): {"points": "0"}}
    )
    before = told(graded_class, "400101201")["total"]
    assert "2 rows were left out" in said("marks", "import", graded_class, sheet, code=1)
    assert told(graded_class, "400101201")["total"] == before


def test_a_grade_may_fall_to_what_was_released(graded_class: Path, tmp_path: Path) -> None:
    released(graded_class, tmp_path / "published")  # 62
    mark = ("marks", "set", graded_class, "400101201", "q6")
    said(*mark, "5", "--why", "x")
    said(*mark, "1", "--why", "A slip.")
    output = said(*mark[:-1], "training", "1", "--why", "y", code=2)
    assert "A grade that was released would fall" in output and "(released: 62 on " in output


@pytest.mark.parametrize("way", ["gradebook", "feedback", "gradescope", "hidden"])
def test_an_export_is_a_release_of_what_is_in_it(graded_class: Path, tmp_path: Path, way: str) -> None:
    sheet = tmp_path / "m.csv"
    said("marks", "export", graded_class, sheet)
    targets = [target for target in _targets(sheet) if target[0] in ("400101201", "400101202")]
    said("marks", "import", graded_class, filled(sheet, {target: {"points": "1"} for target in targets}))
    worksheet = tmp_path / "w.csv"
    worksheet.write_text(
        "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n"
        "Participant 17,S,400101201,,100.00,-\n"
    )
    words: dict[str, tuple[object, ...]] = {
        "gradebook": ("moodle-gradebook", graded_class),
        "feedback": ("feedback-zip", graded_class, "--into", worksheet),
        "gradescope": ("gradescope", graded_class),
        "hidden": ("gradescope", graded_class, "--visibility", "hidden"),
    }
    said("export", *words[way], "--partial")
    with Gradebook(graded_class) as book:
        left = {edit.student_id: edit for edit in book.edits() if isinstance(edit, Released)}
    whose = {"feedback": {"400101201"}, "hidden": set()}.get(way, {"400101201", "400101202"})
    assert left.keys() == whose, "those that await a person, or have no row, did not leave"
    assert all(edit.points == told(graded_class, str(one))["total"] for one, edit in left.items())
    mark = ("marks", "set", graded_class, "400101201", "q6", "0", "--why", "x")
    said(*mark, code=0 if way == "hidden" else 2)


def _targets(sheet: Path) -> list[tuple[str, str]]:
    rows = csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig")))
    return [(row["student_id"], row["item"]) for row in rows if not row["points"]]


def test_a_release_that_cannot_be_noted_is_told_and_nothing_is_lost(
    graded_class: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise UsageError("gradebook.sqlite cannot be written.")

    monkeypatch.setattr(Gradebook, "note", refused)
    output = said("publish", graded_class, "--to", tmp_path / "published", "--partial")
    assert "note: the gradebook does not know that these grades were released: gradebook.sqlite" in output
    assert len(list((tmp_path / "published").glob("students/*/report.html"))) == 4


def test_a_release_is_noted_once(graded_class: Path, tmp_path: Path) -> None:
    for number in range(2):
        released(graded_class, tmp_path / f"published-{number}")
    assert said("history", graded_class, "400101201").count("released") == 1
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "x")
    released(graded_class, tmp_path / "published-3")
    history = said("history", graded_class, "400101201")
    assert "62 by publish" in history and "66 by publish" in history


# --- a sheet that grows -----------------------------------------------------------------------------------


def test_a_growing_sheet_undoes_no_correction(graded_class: Path, tmp_path: Path) -> None:
    said("marks", "export", graded_class, tmp_path / "m.csv")
    sheet = filled(tmp_path / "m.csv", {("400101201", "q6"): {"points": "5"}})
    said("marks", "import", graded_class, sheet, "--by", "ta1")
    said("marks", "set", graded_class, "400101201", "q6", "2", "--why", "Copied.", "--by", "head")
    filled(sheet, {("400101201", "q7"): {"points": "3"}})
    output = said("marks", "import", graded_class, sheet.rename(tmp_path / "new name.csv"), "--by", "ta1")
    assert output.splitlines()[0] == (
        "new name.csv, row 3: 5 was imported before; head gave 2 since: left. "
        "Export the sheet again to change it."
    )
    assert output.endswith("1 mark taken. 1 total changed.\n")
    assert items(graded_class)["q6"]["points"] == 2 and items(graded_class)["q7"]["points"] == 3
    said("marks", "export", graded_class, tmp_path / "again.csv")
    filled(tmp_path / "again.csv", {("400101201", "q6"): {"points": "5"}})
    said("marks", "import", graded_class, tmp_path / "again.csv", "--by", "ta1")
    assert items(graded_class)["q6"]["points"] == 5, "whoever saw the correction may outvote it"
    for points in ("2", "5"):
        said("marks", "set", graded_class, "400101201", "q6", points, "--why", "Read again.", "--by", "head")
        assert items(graded_class)["q6"]["points"] == float(points), "it is said here and now, not in a sheet"


@pytest.mark.parametrize("first", ["", "5"])
def test_the_latest_word_of_one_sheet_counts(graded_class: Path, tmp_path: Path, first: str) -> None:
    """Whoever works in one file goes back and forth in it, also to what was exported."""
    if first:
        said("marks", "set", graded_class, "400101201", "q6", first, "--why", "So far.", "--by", "ta1")
    said("marks", "export", graded_class, tmp_path / "m.csv")
    for written in ("5", "4", "5", "none", "3", "4"):
        sheet = filled(tmp_path / "m.csv", {("400101201", "q6"): {"points": written, "comment": ""}})
        said("marks", "import", graded_class, sheet, "--by", "ta1")
        expected = None if written == "none" else float(written)
        assert items(graded_class)["q6"]["points"] == expected, written


def test_none_that_is_not_taken_is_told(graded_class: Path, tmp_path: Path) -> None:
    said("marks", "export", graded_class, tmp_path / "m.csv")
    sheet = filled(tmp_path / "m.csv", {("400101201", "q6"): {"points": "5"}})
    said("marks", "import", graded_class, sheet, "--by", "ta1")
    other = filled(sheet.rename(tmp_path / "renamed.csv"), {("400101201", "q6"): {"points": "none"}})
    told = said("marks", "import", graded_class, other, "--by", "ta1")
    assert "`none` was left: ta1 gave 5, not by this sheet." in told
    assert items(graded_class)["q6"]["points"] == 5


def test_marks_that_a_rule_leaves_without_effect_are_told(graded_class: Path, tmp_path: Path) -> None:
    student = "400101204"
    said("rule", graded_class, student, "--why", "No report.", "--by", "head")
    told = said("marks", "set", graded_class, student, "q6", "3", "--why", "Read.", "--by", "ta1")
    assert f"{student}: by a rule the total is 0, so marks count for nothing until" in told


def test_a_release_is_about_the_person_who_was_told(graded_class: Path, tmp_path: Path) -> None:
    """The grade was published under a wrong id; whoever gets the submission then was told nothing."""
    released(graded_class, tmp_path / "published")
    said("owner", graded_class, "400101201", "400101999", "--why", "It is theirs.", "--by", "head")
    said("marks", "set", graded_class, "400101999", "model", "1", "--why", "Copied.", "--by", "head")
    report = (graded_class / "students/400101999/report.html").read_text("utf-8")
    assert "Changed since" not in report
    assert "released" not in said("history", graded_class, "400101999")


def items(out: Path) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in told(out, "400101201")["items"]}


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
        "Nothing was taken. Fix these cells and import again.",
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


def test_any_item_can_be_marked_by_itself_and_the_mark_taken_back(graded_class: Path, tmp_path: Path) -> None:
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
    assert said(*again).startswith("That is already the mark.")
    released(graded_class, tmp_path / "published")
    back = ("marks", "set", graded_class, "400101203", "training", "none", "--why", "Measured again.")
    assert "would fall" in said(*back, code=2)
    said(*back, "--allow-lower")
    assert "training" in told(graded_class, "400101203")["awaiting"]
    page = re.sub("<[^>]+>", "", (graded_class / "students/400101203/report.html").read_text("utf-8"))
    assert "Measured again." in page and re.search(r"Changed since [\d-]+: 9 → —\.", page)
    assert "is not from 0 to 15" in said(
        "marks", "set", graded_class, "400101203", "training", "16", "--why", "x", code=2
    )


def test_a_report_that_a_cut_left_behind_is_made_up_for(graded_class: Path) -> None:
    page = graded_class / "students/400101202/report.html"
    page.unlink()
    (graded_class / "results.json").unlink()
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "x")
    assert page.exists() and told(graded_class, "400101201")["total"] == 66
