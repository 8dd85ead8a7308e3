"""The terminal counts the same things as the class page, in the same words."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from grader.cli.class_view import print_results
from grader.domain.assignment_rules import LatePolicy
from grader.domain.score import LateRecord
from grader.domain.submission_result import Result
from grader.reports.results_json.results_schema import DownloadRecord, RosterRecord
from grader.reports.whole_class.class_overview import class_overview
from grader.reports.whole_class.class_page import overview_page


def plain(html):
    """What a reader reads, on one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


@pytest.fixture
def told(large, examples, assignment, capsys, monkeypatch):
    """(assignment, how many were graded now, change of the class) -> the page and the terminal."""
    monkeypatch.setenv("COLUMNS", "250")

    def of(course=assignment, run=None, change=lambda pairs: pairs):
        pairs = change(large.a_large_class(examples, course, 40))
        roster = RosterRecord(
            source="list.csv", students=["1", "2", "3"], missing=["2", "3"], unlisted=[], notes=[]
        )
        download = DownloadRecord(matched=4, superseded=0, refused=0, files=[], notes=[], roster=roster)
        overview = class_overview(course, pairs, download)
        page = overview_page(overview, links={}, generated_at=examples.WHEN)
        now = [Result(*pair) for pair in pairs[:run]]
        print_results(now, overview, Path("out"), 1.0)
        return page, re.sub("\N{NO-BREAK SPACE}", " ", capsys.readouterr().out)

    return of


def test_both_count_submissions_states_and_reasons_alike(told):
    page, terminal = told()
    first = page[page.index("<main>") : page.index("<nav")]
    counts = plain(re.search(r'<ul class="counts">.*?</ul>', first, re.S).group()).split()
    (line,) = re.findall(r"^class {8}(.*)$", terminal, re.M)
    assert line.replace(",", "").split() == counts
    assert counts[:8] == ["40", "submissions", "34", "graded", "2", "incomplete", "2", "refused"]
    assert "2 handed in nothing of 3 on the list" in line
    reasons = [plain(one).strip() for one in re.findall(r"<li><a href=.*?</li>", first, re.S)]
    listed = [re.sub(" +", " ", one) for one in re.findall(r"^  (\S.*\d \w+)$", terminal, re.M)]
    assert len(reasons) > 10 and listed[-len(reasons) :] == reasons
    assert "Not ready to hand out yet." in first and "Not ready to hand out yet." in terminal


def test_a_run_of_a_few_says_what_the_whole_class_came_to(told):
    page, terminal = told(run=3)
    assert "3 submissions of 40" in terminal and "class        40 submissions, 34 graded" in terminal
    assert "<b>40</b> submissions" in page


def test_both_show_the_same_points_and_words_for_each_student(told, assignment):
    late = LateRecord("late", 2, 20.0, 21.5, asked=False, reason="Two days.", seconds=1e5)

    def change(pairs):
        evidence, score = pairs[0]
        return [(evidence, replace(score, late=late)), *pairs[1:]]

    course = replace(assignment, late=LatePolicy(points_per_day=10))
    page, terminal = told(course, change=change)
    (table,) = re.findall(r'<table class="students">.*?</table>', page, re.S)
    rows = re.findall(r"<tr>\n<th scope=\"row\">.*?</tr>", table, re.S)
    assert len(rows) == 40
    seen = set()
    for row in rows:
        cells = [plain(cell).strip() for cell in re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.S)]
        student, status, total, decided, *items = cells[:8]
        (line,) = re.findall(rf"^ *{student.split()[0]} .*$", terminal, re.M)
        shown = re.split(r" {2,}", line.strip())
        points = total if total in ("withheld", "—") else f"{total.split()[0]} of {decided}"
        left = " ".join(total.split()[1:])
        assert shown[1:3] == [status, ", ".join(filter(None, [points, left]))]
        assert shown[3:7] == items
        seen |= {status, *items, total}
    assert {"graded", "incomplete", "refused", "engine error", "withheld", "—"} <= seen
    assert "57 21.5 after the penalty" in seen
