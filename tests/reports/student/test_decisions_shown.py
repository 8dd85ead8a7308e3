"""What people decided, as readers see it: comments, parts, the rule on missing files, waived checks."""

import json
from dataclasses import replace

import pytest

from grader.domain.score import GradeStatus, PartScore, Release, ScoreEdit, Total, Waiver, total_sentence
from grader.reports.results_json.filled_records import submission_record
from grader.reports.results_json.results_file import results_text
from grader.reports.student.grade_summary import banners, points_summary
from grader.reports.student.student_pages import student_page
from grader.reports.whole_class.review_cases import cases


@pytest.fixture
def incomplete(class_results):
    return next(one for one in class_results.values() if one.score.status is GradeStatus.INCOMPLETE)


@pytest.fixture
def no_grade(incomplete, examples):
    edit = ScoreEdit("ta1", examples.WHEN, "No report.", None, 0.0)
    maximum = incomplete.score.maximum
    return replace(incomplete.score, total=0.0, closed=True, decided=maximum, edits=(edit,))


def test_no_grade_is_a_total_of_nothing_and_nothing_is_open(assignment, incomplete, no_grade):
    shown = points_summary(no_grade)
    assert (shown.earned, shown.awaiting, shown.withheld) == (0, 0, False)
    assert {segment.label: segment.amount for segment in shown.segments} == {
        "earned": 0, "not earned": 100, "awaiting a person": 0, "not run": 0,
    }  # fmt: skip

    def held(score):
        return {case.cause.id for case in cases(assignment, incomplete.evidence, score) if case.cause.holds}

    assert held(incomplete.score) - held(no_grade) == {"marks", "incomplete", "late-decide"}


def test_the_rule_is_told_first(assignment, incomplete, no_grade, examples):
    def first(score):
        return banners(assignment, incomplete.evidence, score)[0].title

    assert first(incomplete.score) == "A required file is missing, so the total is withheld"
    assert first(no_grade) == "A required file is missing: 0 points"
    lifted = replace(incomplete.score, total=40.0)
    assert first(lifted) == "A required file is missing; the total counts all the same"
    page = student_page(assignment, incomplete.evidence, no_grade, images={}, generated_at=examples.WHEN)
    assert "ta1" not in page and "— → 0" not in page


def test_comments_and_parts_are_in_the_report_and_in_the_results(assignment, class_results, examples):
    good = class_results["good"]
    attack = "<script>alert(1)</script> & more"
    parts = (PartScore("a", "First part", 2.5, 2.5, (attack,)), PartScore("b", "Second part", None, 2.5))
    lines = tuple(
        replace(line, parts=parts, comments=("Name your sources.",)) if line.id == "q6" else line
        for line in good.score.lines
    )
    score = replace(good.score, lines=lines)
    page = student_page(assignment, good.evidence, score, images={}, generated_at=examples.WHEN)
    assert "Name your sources." in page and "First part" in page and "Second part" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page and attack not in page
    entry = json.loads("".join(results_text(assignment, [(good.evidence, score)])))["submissions"][0]
    item = next(item for item in entry["items"] if item["id"] == "q6")
    assert item["comments"] == ["Name your sources."]
    assert item["parts"] == [
        {"id": "a", "title": "First part", "points": 2.5, "max": 2.5, "comments": [attack]},
        {"id": "b", "title": "Second part", "points": None, "max": 2.5, "comments": []},
    ]


def test_a_comment_is_shown_to_its_end_in_the_lines_that_were_typed(assignment, class_results, examples):
    """At most 5000 characters of one are kept."""
    good = class_results["good"]
    comment = "First:\n" + "word " * 990 + "\nthe end."
    parts = (PartScore("a", "First part", 2.5, 2.5, (comment,)),)
    lines = tuple(
        replace(line, parts=parts, comments=(comment,)) if line.id == "q6" else line
        for line in good.score.lines
    )
    score = replace(good.score, lines=lines)
    page = student_page(assignment, good.evidence, score, images={}, generated_at=examples.WHEN)
    assert page.count(comment) == 2 and ".rubric .comment { white-space: pre-line; }" in page


def test_only_what_changed_since_the_release_is_a_change(assignment, class_results, examples):
    good = class_results["good"]
    edits = (
        ScoreEdit("ta1", examples.WHEN, "Read.", None, 3.0),
        ScoreEdit("ta2", examples.WHEN, "Seen again.", 3.0, 4.0, "class_token", "cB.csv"),
    )
    parts = (PartScore("class_token", "The class token", 4.0, 5.0),)
    lines = tuple(
        replace(line, points=4.0, edits=edits, parts=parts) if line.id == "q6" else line
        for line in good.score.lines
    )

    def page(release):
        score = replace(good.score, lines=lines, released=release)
        return student_page(assignment, good.evidence, score, images={}, generated_at=examples.WHEN)

    def released(points, *told, whole=True):
        when = examples.WHEN
        lines = tuple((target, before, when) for target, before in told)
        grade = (points, when) if whole and points is not None else None
        return Release(when, when, points, grade, lines)

    for silent in (
        None,
        released(None),
        released(good.score.final, ("q6", 4.0)),
        released(1, whole=False),
    ):
        assert "Changed since" not in page(silent)
    same = [(line.id, line.points) for line in lines if line.points is not None and line.id != "q6"]
    told = page(released(good.score.final, *same, ("q6", 3.0), ("q6.class_token", 3.0)))
    assert told.count("Changed since 2026-11-20: 3 → 4.") == 2, "of the item, and of its part"
    assert not any(word in told for word in ("ta1", "ta2", "cB.csv", "Read.", "Seen again."))
    assert "Changed since 2026-11-20: 1 → " in page(released(1, ("q6", 4.0)))


def test_a_waived_check_is_shown_as_passed_and_told_in_the_results(assignment, class_results, examples):
    result = next(
        one
        for one in class_results.values()
        if any(found.diagnosis == "missing_scale" for found in one.evidence.findings)
    )
    finding = next(found for found in result.evidence.findings if found.diagnosis == "missing_scale")
    score = replace(result.score, waived=((finding.check, Waiver("ta1", "wrong")),))

    def page(score):
        return student_page(assignment, result.evidence, score, images={}, generated_at=examples.WHEN)

    assert finding.message[:40] in page(result.score) and finding.message[:40] not in page(score)
    record = submission_record(result.evidence, score)
    assert {one.check: one.waived for one in record.findings if one.waived} == {finding.check: "ta1: wrong"}


@pytest.mark.parametrize(
    ("points", "awaiting", "status", "told"),
    [
        (58.0, 35.0, "graded", "58 of 65 decided, 35 awaiting"),
        (58.5, 0.0, "graded", "58.5 of 65 decided"),
        (None, 35.0, "incomplete", "withheld, 65 decided, 35 awaiting"),
        (None, 35.0, "engine_error", "engine error, 65 decided, 35 awaiting"),
    ],
)
def test_every_total_says_what_it_is(examples, points, awaiting, status, told):
    total = Total("s", points, 65, awaiting, 100, status, "ta1", examples.WHEN, "grade")
    assert total_sentence(total) == told
