import csv
import io
from dataclasses import replace

from grader.reports.results_json.filled_records import scores_csv


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_columns_are_those_of_the_contract(assignment, pairs):
    header = scores_csv(assignment, pairs).split("\n")[0].split(",")
    items = [
        "model",
        "training",
        "evaluation",
        "visualization",
        "report_quality",
        "q6",
        "q7",
        "q8",
        "q9",
        "q10",
    ]
    assert header == ["student_id", "status", "total", "decided", "awaiting", *items]


def test_a_cell_is_empty_when_nobody_knows_the_points(assignment, pairs):
    by_id = {row["student_id"]: row for row in rows(scores_csv(assignment, pairs))}
    assert by_id["400101201"]["total"] == "65" and by_id["400101201"]["decided"] == "65"
    assert by_id["400101201"]["q6"] == ""
    assert by_id["400101201"]["awaiting"] == "report_quality;q6;q7;q8;q9;q10"
    assert by_id["400101207"]["model"] == "0"
    assert by_id["400101211"]["total"] == "" and by_id["400101211"]["model"] == ""
    assert by_id["400101215"]["total"] == "" and by_id["400101215"]["model"] != ""
    assert by_id["400101223"]["training"] == ""
    assert by_id["400101219"]["status"] == "engine_error"


def test_rows_are_ordered_by_student_whatever_the_order_of_results(assignment, pairs):
    assert scores_csv(assignment, pairs) == scores_csv(assignment, pairs[::-1])
    ids = [row["student_id"] for row in rows(scores_csv(assignment, pairs))]
    assert ids == sorted(ids)


def test_an_id_is_never_a_formula(assignment, class_results):
    good = class_results["good"]
    for hostile in ('=HYPERLINK("x")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"):
        text = scores_csv(assignment, [(good.evidence, replace(good.score, student_id=hostile))])
        (row,) = rows(text)
        assert row["student_id"][0] not in "=+-@\t\r＝"
        assert row["total"] == "65"
