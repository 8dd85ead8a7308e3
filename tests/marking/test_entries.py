"""What markers wrote: taken as it is meant, or refused with the row and the column."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from grader.domain.assignment import Remark
from grader.domain.errors import UsageError
from grader.marking.entries import Reader, edits_of
from grader.marking.files import read_sheet, write_sheet
from grader.marking.row import Mark

STUDENTS = ("400101201", "400101202", "0042")
NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


@pytest.fixture
def read(assignment, sheet, tmp_path):
    """`read(*rows, edits=())`: the entries of a sheet with these rows."""

    def entries(*rows, edits=(), on=assignment):
        path = tmp_path / "m.csv"
        path.write_text(sheet(*rows), "utf-8")
        return Reader(on, STUDENTS, edits).entries(read_sheet(path))

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
        "m.csv, row 16, column 'item': m.csv, row 2 marks 'q6' of 400101201 otherwise. Keep one.",
        "Nothing was taken. Mend these cells and import again.",
    ]


def test_an_item_that_the_grader_scores_can_be_changed_with_a_reason(read, assignment):
    [entry] = read(cells("9", item="training", comment="Seen in the lab."))
    [edit] = edits_of([entry], assignment, who="ta1", clock=lambda: NOW)
    assert (edit.target, edit.value, edit.comment, edit.why, edit.sheet) == (
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
        assert Reader(assignment, students, edits).entries(read_sheet(tmp_path / name)) == []
        # not even when somebody else marked since, or the rubric is stricter, or the bank lost the comment
        later = [*edits, mark("400101201", "q6", 5, who="ta2")]
        smaller = [replace(item, points=2) if item.id == "q6" else item for item in assignment.rubric]
        changed = replace(assignment, rubric=tuple(smaller), remarks=())
        assert Reader(changed, students, later).entries(read_sheet(tmp_path / name)) == []


def test_the_same_sheet_twice_is_taken_once(read, assignment):
    row = cells("3", comment="Good.")
    first = edits_of(read(row), assignment, who="ta1", clock=lambda: NOW)
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
    [edit] = edits_of([entry], assignment, who="ta1", clock=lambda: NOW)
    bank = {remark.id: remark for remark in assignment.remarks}
    assert isinstance(bank["no_locality"], Remark)
    assert edit.remarks == (("old_one", "As it was."), ("no_locality", bank["no_locality"].text))
