"""What markers wrote: taken as it is meant, or refused with the row and the column."""

import re
import zipfile
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from openpyxl import Workbook

from grader.decisions.mark_entries import COLUMNS, Mark, edits_of
from grader.decisions.marking import Reader
from grader.decisions.sheet_files import read_sheet, write_sheet
from grader.domain.assignment import Remark
from grader.domain.errors import UsageError

STUDENTS = ("400101201", "400101202", "0042")
NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


@pytest.fixture
def read(assignment, sheet, tmp_path):
    """`read(*rows, edits=())`: the entries of a sheet with these rows."""

    def entries(*rows, edits=(), on=assignment):
        path = tmp_path / "m.csv"
        path.write_text(sheet(*rows), "utf-8")
        return Reader(on, STUDENTS, edits, who="ta1").entries(read_sheet(path))

    return entries


def cells(points, item="q6", student="400101201", **more):
    return {"student_id": student, "item": item, "points": points, **more}


def test_filled_rows_are_entries(read):
    ids = "effect_not_measured"
    [first, second] = read(
        cells("3.5", comment=" Well argued. "), cells(""), cells("5", "q7", comment_ids=f"{ids}, {ids}")
    )
    assert (first.student_id, first.target, first.mark) == ("400101201", "q6", Mark(3.5, "Well argued."))
    assert second.mark == Mark(5, "", (ids,))
    assert str(first) == "400101201 q6: no mark -> 3.5"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("3", 3), ("3,5", 3.5), ("۳٫۵", 3.5), ("0", 0), ("2.345", 2.35), ("5.0", 5)],
)
def test_numbers_are_read_as_people_write_them(read, written, meant):
    [entry] = read(cells(written))
    assert entry.mark.points == meant


def test_zeros_that_a_spreadsheet_ate_are_put_back(read):
    [entry] = read(cells("1", student="42"))
    assert entry.student_id == "0042"


def test_the_whole_sheet_is_refused_with_every_fault(read):
    with pytest.raises(UsageError) as caught:
        read(
            cells("3"),
            cells("6"),
            cells("-1"),
            cells("nan"),
            cells("three"),
            cells("3", student="400101202-1"),
            cells("3", student=""),
            cells("3", item="q66"),
            cells("3", item="q10"),
            cells("2.6", item="q10.class_token"),
            cells("", comment="Nice."),
            cells("3", item="q8", comment_ids="no_localty"),
            cells("3", item="q7", comment_ids="no_locality"),
            cells("9", item="training"),
            cells("2", item="q6"),
        )
    parts = "'q10.image_to_output', 'q10.patches_to_sequence', 'q10.multi_head_attention'"
    assert str(caught.value).splitlines() == [
        "m.csv, row 3, column 'points': '6' is not from 0 to 5. Correct it.",
        "m.csv, row 4, column 'points': '-1' is not from 0 to 5. Correct it.",
        "m.csv, row 5, column 'points': 'nan' is not from 0 to 5. Correct it.",
        "m.csv, row 6, column 'points': 'three' is not a number. Write one, or leave the cell empty.",
        "m.csv, row 7, column 'student_id': '400101202-1' is not in the gradebook. Did you mean '400101202'?",
        "m.csv, row 8, column 'student_id': it is empty. Write the student's id.",
        "m.csv, row 9, column 'item': the rubric has no 'q66'. Did you mean 'q6'?",
        f"m.csv, row 10, column 'item': 'q10' is marked in parts: write {parts} and 'q10.class_token' "
        "in rows of their own.",
        "m.csv, row 11, column 'points': '2.6' is not from 0 to 2.5. Correct it.",
        "m.csv, row 12, column 'comment': a comment comes with points, and there are none. Fill in 'points'.",
        "m.csv, row 13, column 'comment_ids': the comment bank has no 'no_localty'. "
        "Did you mean 'no_locality'?",
        "m.csv, row 14, column 'comment_ids': 'no_locality' is about 'q8', not 'q7'. Choose another.",
        "m.csv, row 15, column 'comment': the grader scores 'training' itself. "
        "Say here why a person changes it.",
        "m.csv, row 16, column 'item': m.csv, row 2 marks 'q6' of 400101201 differently. Keep one.",
        "Nothing was taken. Fix these cells and import again.",
    ]


def test_an_item_that_the_grader_scores_can_be_changed_with_a_reason(read, assignment):
    [entry] = read(cells("9", item="training", comment="Seen in the lab."))
    [edit] = edits_of([entry], assignment, who="ta1", when=NOW)
    assert (edit.target, edit.points, edit.comment, edit.why, edit.sheet) == (
        "training", 9, "Seen in the lab.", "", "m.csv",
    )  # fmt: skip


def test_an_unchanged_export_says_nothing_new(rows_with, mark, assignment, tmp_path):
    edits = [
        mark("400101201", "q6", 2.5, comment="=a\nb", remarks=(("position_order_only", "x"),)),
        mark("400101202", "q10.class_token", 0),
        mark("400101201", "training", 1 / 3, comment="Why."),
    ]
    rows = rows_with(*edits)
    for name in ("m.csv", "m.xlsx"):
        write_sheet(tmp_path / name, rows)
        students = tuple(dict.fromkeys(row.student_id for row in rows))
        assert Reader(assignment, students, edits, who="ta1").entries(read_sheet(tmp_path / name)) == []
        # not even when somebody else marked since, or the rubric is stricter, or the bank lost the comment
        later = [*edits, mark("400101201", "q6", 5, who="ta2")]
        smaller = [replace(item, points=2) if item.id == "q6" else item for item in assignment.rubric]
        changed = replace(assignment, rubric=tuple(smaller), remarks=())
        assert Reader(changed, students, later, who="ta1").entries(read_sheet(tmp_path / name)) == []


def test_the_same_sheet_twice_is_taken_once(read, assignment):
    row = cells("3", comment="Good.")
    first = edits_of(read(row), assignment, who="ta1", when=NOW)
    assert read(row, edits=first) == []
    [entry] = read(cells("3", comment="Very good."), edits=first)
    assert entry.mark.comment == "Very good."


def test_an_empty_cell_leaves_a_mark_and_none_takes_it_back(read, mark):
    edits = [mark("400101201", "q6", 4)]
    assert read(cells(""), edits=edits) == []
    [entry] = read(cells("none"), edits=edits)
    assert entry.mark == Mark() and str(entry) == "400101201 q6: 4 (ta1) -> no mark"
    assert read(cells("none")) == []


def test_two_markers_differ_and_both_are_told(read, mark, assignment):
    [entry] = read(cells("3", exported=Mark().token), edits=[mark("400101201", "q6", 4)])
    assert str(entry) == "400101201 q6: 4 (ta1) -> 3"


def test_comments_keep_the_text_that_they_had(read, mark, assignment):
    told = (("old_one", "As it was."),)
    edits = [mark("400101201", "q8", 2, remarks=told)]
    [entry] = read(cells("3", item="q8", comment_ids="old_one no_locality"), edits=edits)
    [edit] = edits_of([entry], assignment, who="ta1", when=NOW)
    bank = {remark.id: remark for remark in assignment.remarks}
    assert isinstance(bank["no_locality"], Remark)
    assert edit.remarks == (("old_one", "As it was."), ("no_locality", bank["no_locality"].text))


# --- cells that were imported before ----------------------------------------------------------------------


def exported(mark_, number):
    return f"{mark_.token}-{number}"


def reader(assignment, sheet, tmp_path, edits, *rows, name="m.csv"):
    path = tmp_path / name
    path.write_text(sheet(*rows), "utf-8")
    made = Reader(assignment, STUDENTS, edits, who="ta1")
    return made.entries(read_sheet(path)), made.left


FIVE = {"sheet": "m.csv", "comment": "Good."}
LATER = {"who": "head", "comment": "Copied."}


@pytest.mark.parametrize(
    ("typed", "since", "told"),
    [
        ({"points": "5", "comment": "Good."}, 2, "5 was imported before; head gave 2 since: left."),
        ({"points": "5", "comment": "Good."}, None, "5 was imported before; head took it back since: left."),
        ({"points": "5", "comment": "Good."}, 5, "5 was imported before; head gave another comment since"),
        ({"points": "5", "comment": "Very good."}, 2, "5 was imported before; head gave 2 since: left."),
        ({"points": "5", "comment": "Very good."}, 5, ""),  # a new comment for points that stand
        ({"points": "4", "comment": "Good."}, 2, ""),  # another mark
    ],
)
def test_a_cell_that_was_imported_before_is_left(assignment, sheet, mark, tmp_path, typed, since, told):
    edits = [mark("400101201", "q6", 5, **FIVE), mark("400101201", "q6", since, **LATER)]
    for more in ({}, {"exported": Mark().token}, {"exported": exported(Mark(), 0)}):
        row = cells(typed["points"], comment=typed["comment"], **more)
        entries, left = reader(assignment, sheet, tmp_path, edits, row, name="renamed.csv")
        assert bool(entries) is not bool(told)
        assert [told in str(one) for one in left] == [True] * bool(told)
    assert not left or str(left[0]).startswith("renamed.csv, row 2: ")


def test_a_sheet_that_was_exported_after_the_change_was_filled_in_on_purpose(
    assignment, sheet, mark, tmp_path
):
    edits = [mark("400101201", "q6", 5, **FIVE), mark("400101201", "q6", 2, **LATER)]
    row = cells("5", comment="Good.", exported=exported(Mark(2, "Copied."), 2))
    assert reader(assignment, sheet, tmp_path, edits, row)[0][0].mark == Mark(5, "Good.")


def test_a_mark_that_stands_again_as_it_was_is_no_sign_of_a_new_sheet(assignment, sheet, mark, tmp_path):
    """Exported while 4 stood; 5 was imported; somebody set 4 again: the sheet is older than that."""
    edits = [
        mark("400101201", "q6", 4),
        mark("400101201", "q6", 5, sheet="m.csv"),
        mark("400101201", "q6", 4, who="head"),
    ]
    row = cells("5", exported=exported(Mark(4), 1))
    assert reader(assignment, sheet, tmp_path, edits, row)[0] == []
    taken_back = [*edits[1:2], mark("400101201", "q6", None, who="head")]
    assert reader(assignment, sheet, tmp_path, taken_back, cells("5", exported=exported(Mark(), 0)))[0] == []


def test_none_that_was_imported_before_is_left_too(assignment, sheet, mark, tmp_path):
    edits = [
        mark("400101201", "q6", 4),
        mark("400101201", "q6", None, sheet="m.csv"),
        mark("400101201", "q6", 3, who="head"),
    ]
    entries, [left] = reader(assignment, sheet, tmp_path, edits, cells("none", exported=exported(Mark(4), 1)))
    assert entries == [] and "none was imported before; head gave 3 since: left." in str(left)


def test_none_takes_back_what_the_sheet_itself_gave_and_nothing_else(assignment, sheet, mark, tmp_path):
    row = cells("none", exported=exported(Mark(), 0))
    entries, _ = reader(assignment, sheet, tmp_path, [mark("400101201", "q6", 4, sheet="m.csv")], row)
    assert [entry.mark for entry in entries] == [Mark()]
    for others in (mark("400101201", "q6", 4), mark("400101201", "q6", 4, sheet="n.csv")):
        assert reader(assignment, sheet, tmp_path, [others], row)[0] == []


def test_copies_of_one_sheet_are_sheets_of_their_own(assignment, sheet, mark, tmp_path):
    """Both assistants got `m.csv` while 4 stood; ta2 marked, then ta1 imports a copy with the old row."""
    given = mark("400101201", "q6", 4)
    theirs = [given, mark("400101201", "q6", 5, who="ta2", sheet="m.csv")]
    own = [given, mark("400101201", "q6", 5, sheet="m.csv")]
    untouched = cells("4", exported=exported(Mark(4.0), 1))
    assert reader(assignment, sheet, tmp_path, theirs, untouched) == ([], [])
    [entry] = reader(assignment, sheet, tmp_path, own, untouched)[0]
    assert entry.mark == Mark(4), "typed again in the own copy"
    # what ta1 imported before undoes nothing, either
    since = [*own, mark("400101201", "q6", 2, who="ta2", sheet="m.csv")]
    entries, [left] = reader(assignment, sheet, tmp_path, since, cells("5", exported=exported(Mark(4.0), 1)))
    assert entries == [] and "5 was imported before; ta2 gave 2 since: left." in str(left)
    first = [mark("400101201", "q6", 5, who="ta2", sheet="m.csv")]
    entries, [left] = reader(assignment, sheet, tmp_path, first, cells("none", exported=exported(Mark(), 0)))
    assert entries == [] and "`none` was left: ta2 gave 5, in a sheet of the same name." in str(left)


def test_what_another_way_gave_was_not_imported(assignment, sheet, mark, tmp_path):
    """`marks set` is not a sheet: a marker may type the same."""
    edits = [mark("400101201", "q6", 5), mark("400101201", "q6", 2, who="head")]
    assert len(reader(assignment, sheet, tmp_path, edits, cells("5"))[0]) == 1


def test_parts_are_cells_of_their_own(assignment, sheet, mark, tmp_path):
    edits = [
        mark("400101201", "q10.class_token", 2, sheet="m.csv"),
        mark("400101201", "q10.class_token", 1, who="head"),
        mark("400101202", "q10.class_token", 2.5, who="head"),
    ]
    rows = (
        cells("2", "q10.class_token"),
        cells("2", "q10.image_to_output"),
        cells("2", "q10.class_token", "400101202"),
    )
    entries, left = reader(assignment, sheet, tmp_path, edits, *rows)
    assert [(one.student_id, one.target) for one in entries] == [
        ("400101201", "q10.image_to_output"),
        ("400101202", "q10.class_token"),
    ]
    assert len(left) == 1


# --- cells that are not text and no number -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "alone"),
    [("4/5", "4"), (".5/5", ".5"), ("-1/5", "-1")]
    + [(each, "4") for each in ("4 / 5", "4 of 5", "4 out of 5", "4 از 5")],
)
def test_points_of_so_many_are_told_how_to_write_them(read, written, alone):
    said = f"'{written}' is not a number. Write the points alone: {alone}."
    with pytest.raises(UsageError, match=re.escape(said)):
        read(cells(written))


@pytest.mark.parametrize("written", ["n/a", "sofa", "all of 5"])
def test_words_are_no_points_of_so_many(read, written):
    with pytest.raises(UsageError, match=f"'{written}' is not a number. Write one, or leave the cell empty."):
        read(cells(written))


@pytest.mark.parametrize("column", ["student_id", "item", "points", "comment", "comment_ids"])
def test_a_formula_without_a_value_is_a_wrong_cell(assignment, tmp_path, column):
    row = {"student_id": "400101201", "item": "q6", "points": "4", "comment": "", "comment_ids": ""}
    path = tmp_path / "m.xlsx"
    workbook(path, {**row, column: "=1+1"})
    with pytest.raises(UsageError) as caught:
        Reader(assignment, STUDENTS, (), who="ta1").entries(read_sheet(path))
    [told, _] = str(caught.value).splitlines()
    assert told.startswith(f"m.xlsx, row 2, column '{column}': it holds a formula whose value is not stored.")


def test_a_row_of_nothing_but_formulas_is_no_empty_row(assignment, tmp_path):
    workbook(tmp_path / "m.xlsx", {"student_id": "=A1", "item": "=A1", "points": "=A1"})
    with pytest.raises(UsageError, match="column 'points': it holds a formula"):
        Reader(assignment, STUDENTS, (), who="ta1").entries(read_sheet(tmp_path / "m.xlsx"))


def test_formulas_that_nobody_asks_for_do_no_harm(assignment, tmp_path):
    workbook(tmp_path / "m.xlsx", {"student_id": "400101201", "item": "q6", "points": 4, "note": "=1+1"})
    [entry] = Reader(assignment, STUDENTS, (), who="ta1").entries(read_sheet(tmp_path / "m.xlsx"))
    assert entry.mark == Mark(4)


def test_dates_and_errors_are_wrong_cells(assignment, tmp_path):
    workbook(
        tmp_path / "m.xlsx",
        {"student_id": "400101201", "item": "q6", "points": datetime(2026, 4, 5)},
        {"student_id": "400101201", "item": "q7", "points": 3, "comment": "#REF!"},
    )
    with pytest.raises(UsageError) as caught:
        Reader(assignment, STUDENTS, (), who="ta1").entries(read_sheet(tmp_path / "m.xlsx"))
    date, error, _ = str(caught.value).splitlines()
    assert date.startswith("m.xlsx, row 2, column 'points': it holds a date, which")
    assert error.startswith("m.xlsx, row 3, column 'comment': it holds a formula that gives an error.")


def test_a_percentage_is_a_wrong_cell(assignment, tmp_path):
    """A spreadsheet stores 85% as 0.85, which would be taken for the points."""
    path = tmp_path / "m.xlsx"
    book = Workbook()
    book.active.append(list(COLUMNS))
    for item, points, number_format in (("q6", 0.85, "0%"), ("q7", 0.125, "0.00%;[Red]-0.00%")):
        row = cells(points, item, max=0.5)
        book.active.append([row.get(column) for column in COLUMNS])
        book.active.cell(book.active.max_row, COLUMNS.index("points") + 1).number_format = number_format
    book.save(path)
    with pytest.raises(UsageError) as caught:
        Reader(assignment, STUDENTS, (), who="ta1").entries(read_sheet(path))
    advice = "Write a number, in a cell that is formatted as one."
    assert str(caught.value).splitlines() == [
        f"m.xlsx, row 2, column 'points': it holds 85%, which the spreadsheet stores as 0.85. {advice}",
        f"m.xlsx, row 3, column 'points': it holds 12.5%, which the spreadsheet stores as 0.125. {advice}",
        "Nothing was taken. Fix these cells and import again.",
    ]
    for row in (2, 3):
        book.active.cell(row, COLUMNS.index("points") + 1).number_format = '0.0" % done"'
    book.active.cell(2, COLUMNS.index("max") + 1).number_format = "0%"  # nobody asks for it
    book.save(path)
    entries = Reader(assignment, STUDENTS, (), who="ta1").entries(read_sheet(path))
    assert [entry.mark.points for entry in entries] == [0.85, 0.13]


@pytest.mark.parametrize("written", ["1_0", "1_000.5", "85%"])
def test_what_only_a_program_takes_for_a_number_is_refused(read, written):
    with pytest.raises(UsageError, match=f"row 2, column 'points': '{written}' is not a number. Write one"):
        read(cells(written))


def test_a_formula_with_a_stored_value_is_that_value(assignment, tmp_path):
    path = tmp_path / "m.xlsx"
    workbook(path, {"student_id": "400101201", "item": "q6", "points": "=3+1", "comment": '=IF(1,"",1)'})
    stored = (("<f>3+1</f><v />", "<f>3+1</f><v>4</v>"), ('"><f>IF', '" t="str"><f>IF'))
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet = files["xl/worksheets/sheet1.xml"].decode().replace("<v></v>", "<v />")
    for old, new in stored:
        assert sheet.count(old) == 1, sheet
        sheet = sheet.replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, "xl/worksheets/sheet1.xml": sheet.encode()}.items():
            archive.writestr(name, content)
    [entry] = Reader(assignment, STUDENTS, (), who="ta1").entries(read_sheet(path))
    assert entry.mark == Mark(4)


def workbook(path, *rows):
    book = Workbook()
    book.active.append(list(COLUMNS))
    for row in rows:
        book.active.append([row.get(column) for column in COLUMNS])
    book.save(path)
