"""Lateness and the account of the files, where people read them."""

import csv
import io
import json
import re
from dataclasses import replace
from datetime import timedelta

import jsonschema
import pytest

from grader.domain.assignment_rules import LatePolicy
from grader.domain.submission import AccountedFile, Delivery, Download, Fate
from grader.reports.results_json.filled_records import scores_csv
from grader.reports.results_json.results_file import download_record, results_schema, results_text
from grader.reports.student.student_pages import student_page
from grader.reports.whole_class.class_page import class_page
from grader.scoring import score

LATE = r"Handed in [\d a-z]+ late"
HOSTILE = '<script>alert(1)</script>".py'


@pytest.fixture(scope="module")
def ruled(assignment):
    """The assignment with a rule for late work."""
    return replace(assignment, late=LatePolicy(points_per_day=4))


@pytest.fixture
def handed_in(class_results):
    """The good submission's evidence, handed in otherwise."""

    def of(received_at=None, **delivery):
        return replace(class_results["good"].evidence, received_at=received_at, delivery=Delivery(**delivery))

    return of


def words(html):
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    plain = re.sub(r"<[^>]+>", " ", body).replace("\N{NO-BREAK SPACE}", " ")
    return re.sub(r"\s+", " ", plain)


def student(assignment, evidence, examples):
    scored = score(assignment, evidence)
    return words(student_page(assignment, evidence, scored, images={}, generated_at=examples.WHEN))


def the_class(assignment, evidence, examples, download=None):
    pairs = [(evidence, score(assignment, evidence))]
    page = class_page(assignment, pairs, links={}, generated_at=examples.WHEN, download=download)
    return words(page)


def test_a_known_penalty_is_told_everywhere(ruled, handed_in, examples):
    evidence = handed_in(ruled.deadline + timedelta(days=1, hours=5))
    total = score(ruled, evidence).total
    page = student(ruled, evidence, examples)
    assert "Handed in 1 day 5 h late" in page
    assert f"8 points are taken off, so {total:g} become {total - 8:g}" in page
    page = the_class(ruled, evidence, examples)
    assert "8 points less" in page and f"{total - 8:g} after the penalty" in page
    (row,) = csv.DictReader(io.StringIO(scores_csv(ruled, [(evidence, score(ruled, evidence))])))
    assert (row["days_late"], row["penalty"], row["total_after"]) == ("2", "8", f"{total - 8:g}")
    assert row["total"] == f"{total:g}"


@pytest.mark.parametrize(
    ("after", "told", "days"),
    [
        (timedelta(seconds=1), "1 min late", 1),
        (timedelta(hours=23, minutes=59, seconds=1), "1 day late", 1),
        (timedelta(days=1), "1 day late", 1),
        (timedelta(days=1, seconds=1), "1 day 1 min late", 2),
        (timedelta(days=2, hours=12), "2 days 12 h late", 3),
        (timedelta(days=3, minutes=-1), "2 days 23 h 59 min late", 3),
        (timedelta(days=70), "70 days late", 70),
    ],
)
def test_every_reader_is_told_the_same_lateness(ruled, handed_in, examples, after, told, days):
    """2.5 days are two and a half days in the title, in what they cost and in the queue: counted once."""
    evidence = handed_in(ruled.deadline + after)
    late = score(ruled, evidence).late
    assert (late.days, late.how_late) == (days, told)
    counted = f"{days} {'day' if days == 1 else 'days'}"
    cost = f"{told},{'' if told == f'{counted} late' else f' so {counted}'} at 4 points each"
    assert late.reason.startswith(cost)
    page = student(ruled, evidence, examples)
    assert f"Handed in {told}" in page and cost in page
    assert f"{told}: {late.penalty:g} points less" in the_class(ruled, evidence, examples)
    rows = csv.DictReader(io.StringIO(scores_csv(ruled, [(evidence, score(ruled, evidence))])))
    assert [row["days_late"] for row in rows] == [str(days)]


def test_a_mark_without_a_time_asks_a_person_and_takes_nothing_off(ruled, handed_in, examples):
    evidence = handed_in(marked_late=True)
    assert "Marked as late" in student(ruled, evidence, examples)
    page = the_class(ruled, evidence, examples)
    assert "Marked as late: look up by how much" in page and "after the penalty" not in page
    assert "Late, and a person decides 1 submission" in page
    (row,) = csv.DictReader(io.StringIO(scores_csv(ruled, [(evidence, score(ruled, evidence))])))
    assert (row["days_late"], row["penalty"], row["total_after"]) == ("", "", "")


def test_a_hint_is_called_one(ruled, handed_in, examples):
    evidence = handed_in(
        hinted_at=ruled.deadline + timedelta(days=9), hint="the modification time in the zip"
    )
    page = student(ruled, evidence, examples)
    assert "the modification time in the zip, which proves nothing" in page
    assert not re.search(LATE, page)
    page = the_class(ruled, evidence, examples)
    assert "When it came is not known 1 submission" in page
    assert "Nothing shows when it came (the modification time" in page and "Nothing was taken off." in page
    assert "the modification time in the zip is only a hint" in page


def test_an_extension_is_named_as_the_students_own_deadline(ruled, handed_in, examples):
    own = ruled.deadline + timedelta(days=2)
    assert not re.search(LATE, student(ruled, handed_in(own, extension=own), examples))
    late = handed_in(own + timedelta(hours=1), extension=own)
    assert "Your own deadline" in student(ruled, late, examples)


def test_the_table_has_no_such_columns_without_a_rule(assignment, handed_in):
    evidence = handed_in(assignment.deadline + timedelta(days=1))
    assert "penalty" not in scores_csv(assignment, [(evidence, score(assignment, evidence))])


@pytest.fixture
def download():
    """An account with each fate, and strings that a student chose."""
    return download_record(
        Download(
            (
                AccountedFile("1001.pth", Fate.MATCHED, "1001", "1001.pth was taken as 1001_a.pth."),
                AccountedFile("1001_a.py", Fate.MATCHED, "1001"),
                AccountedFile("old.py", Fate.SUPERSEDED, "1001", "old.py: is an earlier attempt."),
                AccountedFile("data.zip/1.jpg and others", Fate.REFUSED, "1001", "1.jpg: is damaged.", 30),
                AccountedFile(HOSTILE, Fate.REFUSED, None, f"{HOSTILE}: is nobody's."),
            ),
            ("1002: has an extension, but nothing in the download has this id.",),
        )
    )


def test_the_account_is_on_the_class_page_in_short_form(ruled, handed_in, examples, download):
    evidence = handed_in(ruled.deadline)
    pairs = [(evidence, score(ruled, evidence))]
    html = class_page(ruled, pairs, links={}, generated_at=examples.WHEN, download=download)
    page = words(html)
    assert "34 files: 2 matched (they belong to a submission), 1 of earlier attempts, 31 refused." in page
    assert "Earlier attempts (1)" in page and "Refused (31)" in page and "Accepted, with a remark (1)" in page
    assert "1002: has an extension" in page
    assert "1001_a.py" not in page.replace("as 1001_a.pth", ""), "what is as it should be is only counted"
    assert "<script>alert" not in html


def test_the_results_hold_the_whole_account(ruled, handed_in, download):
    evidence = handed_in(ruled.deadline + timedelta(days=1), extension=ruled.deadline)
    document = json.loads("".join(results_text(ruled, [(evidence, score(ruled, evidence))], download)))
    jsonschema.validate(document, results_schema())
    assert document["download"]["refused"] == 31 and len(document["download"]["files"]) == 5
    assert sum(file["count"] for file in document["download"]["files"]) == 34
    (entry,) = document["submissions"]
    assert entry["late"]["days"] == 1 and entry["late"]["penalty"] == 4
    assert entry["late"]["total_after"] == entry["total"] - 4
    assert entry["extension"] and entry["marked_late"] is False and entry["received_hint"] is None
