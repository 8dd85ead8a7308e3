import re
from dataclasses import replace

import pytest

from grader.domain.score import GradeStatus
from grader.reporting.class_page import class_page
from grader.reporting.class_statistics import check_rates, common_mistakes, flags, open_steps, status_counts


@pytest.fixture(scope="session")
def links(pairs):
    return {score.student_id: f"students/{score.student_id}/report.html" for _, score in pairs}


@pytest.fixture(scope="session")
def page(assignment, pairs, links, examples):
    return class_page(assignment, pairs, links=links, generated_at=examples.WHEN)


def words(html):
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    plain = re.sub(r"<[^>]+>", " ", body).replace("\N{NO-BREAK SPACE}", " ")
    return re.sub(r"\s+", " ", plain)


def row(html, student_id):
    return words(re.search(rf"<tr>\s*<th scope=\"row\">[^\n]*{student_id}.*?</tr>", html, re.S).group())


def test_page_asks_for_nothing_outside_itself(page):
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert not re.search(r"https?:|<script|<link|@import|\son\w+=|url\((?!#)", page)


def test_every_student_is_linked_once_in_the_order_of_ids(page, links):
    assert re.findall(r'href="([^"]+)"', page) == [links[student_id] for student_id in sorted(links)]


def test_order_of_results_does_not_matter(assignment, pairs, links, examples, page):
    assert class_page(assignment, pairs[::-1], links=links, generated_at=examples.WHEN) == page


def test_totals_are_shown_withheld_or_unknown(page):
    assert "graded 46.6 65 26.14 7.96 2.5 10 55.0 %" in row(page, "400101204")
    assert "incomplete withheld" in row(page, "400101215")
    assert "refused — 0 —" in row(page, "400101211")
    assert "graded 0 65 0 0 0 0 — " in row(page, "400101207")
    assert "not run" in row(page, "400101230")


def test_page_says_what_still_needs_a_person(page, pairs):
    told = words(page)
    assert "Not ready to hand out yet." in told
    assert "A person still marks 260 points in 7 submissions." in told
    assert "1 submission is to be graded again after an engine error." in told
    assert status_counts(pairs) == (("graded", 6), ("incomplete", 1), ("refused", 1), ("engine error", 1))
    assert "400101211 , refused: homework.py, line 12" in told


def test_a_class_is_ready_when_every_point_is_decided(assignment, class_results, examples):
    good = class_results["good"]
    lines = tuple(replace(line, points=line.points or 1.0, state="decided") for line in good.score.lines)
    done = [(good.evidence, replace(good.score, lines=lines, decided=100, total=71.0))]
    assert open_steps(done) == ()
    assert "Ready to hand out" in class_page(assignment, done, links={}, generated_at=examples.WHEN)
    assert open_steps([(good.evidence, good.score)]) == (
        "A person still marks 35 points in 1\xa0submission.",
    )


def test_an_empty_class_has_a_page(assignment, examples):
    html = class_page(assignment, [], links={}, generated_at=examples.WHEN)
    assert "There is no submission." in html and "<table" not in html


def test_recognized_mistakes_are_counted_by_student(pairs):
    first, second, *rest = common_mistakes(pairs)
    assert (first.diagnosis, first.students) == ("missing_scale", ("400101204", "400101215"))
    assert (second.diagnosis, second.component) == ("gradients_on", "evaluate")
    assert {one.diagnosis for one in rest} == {"not_implemented"}


def test_check_rates_leave_out_what_could_not_be_decided(assignment, pairs):
    rates = {rate.check: rate for rate in check_rates(assignment, pairs)}
    scale = rates["attention_matches_oracle"]
    assert (scale.passed, scale.failed) == (4, 3)
    assert scale.share == pytest.approx(4 / 7)
    labels = rates["predictions_name_labels"]
    assert (labels.passed, labels.failed, labels.errored) == (4, 1, 2)
    assert labels.share == pytest.approx(4 / 5)


def test_flags_are_what_a_person_should_look_at(assignment, class_results):
    def of(name):
        one = class_results[name]
        return " | ".join(flags(assignment, one.evidence, one.score)).replace("\xa0", " ")

    assert of("good") == ""
    assert of("missing_scale") == "1 check could not be decided | Weights do not fit | Late by 10 h 00 min"
    assert "Missing: report" in of("incomplete")
    assert "Forbidden part used: torch.nn.MultiheadAttention" in of("forbidden")
    assert "Unofficial" in of("forbidden") and "Partial" in of("forbidden")
    assert "time limit" in of("budget")
    assert "disk space" in of("engine_error")


def test_a_flagged_part_is_for_a_person_to_decide(assignment, class_results):
    one = class_results["forbidden"]
    name = "torch.nn.functional.scaled_dot_product_attention"
    use = replace(one.evidence.forbidden[0], rule=name, name=name)
    told = flags(assignment, replace(one.evidence, forbidden=(use,)), one.score)
    assert f"Decide about: {name}" in told
    assert not any(flag.startswith("Forbidden part used") for flag in told)


def test_a_check_that_passed_with_a_remark_is_for_a_person_to_decide(assignment, class_results, with_remark):
    one = class_results["good"]
    assert flags(assignment, with_remark(one.evidence, 2), one.score) == ("Decide about: fixed positions",)
    unnamed = replace(with_remark(one.evidence, 1), findings=())
    assert flags(assignment, unnamed, one.score) == ()


def test_remarks_stand_on_the_page_and_are_no_mistakes(assignment, class_results, with_remark, examples):
    one = class_results["good"]
    pair = (with_remark(one.evidence, 2), one.score)
    assert common_mistakes([pair]) == ()
    assert all(rate.share == 1 for rate in check_rates(assignment, [pair]))
    html = class_page(assignment, [pair], links={}, generated_at=examples.WHEN)
    assert "Decide about: fixed positions" in row(html, one.score.student_id)


def test_hostile_ids_reasons_and_links_are_shown_and_never_obeyed(assignment, class_results, examples):
    one = class_results["refused"]
    hostile = "<script>alert(1)</script>"
    score = replace(one.score, student_id=hostile, reason=hostile, status=GradeStatus.REFUSED)
    html = class_page(
        assignment,
        [(one.evidence, score)],
        links={hostile: "javascript:alert(1)"},
        generated_at=examples.WHEN,
    )
    assert "<script" not in html and "javascript:" not in html
    assert html.count("&lt;script&gt;") >= 3
