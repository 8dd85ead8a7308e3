import re
from dataclasses import replace

import pytest

from grader.domain.analyzed_program import Note
from grader.domain.score import GradeStatus
from grader.reports.results_json.results_schema import DownloadRecord, RosterRecord
from grader.reports.whole_class.class_page import class_page, leaderboard_page
from grader.reports.whole_class.class_statistics import check_rates, common_mistakes, status_counts
from grader.reports.whole_class.review_cases import cases


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
    (table,) = re.findall(r'<table class="students">.*?</table>', html, re.S)
    return words(re.search(rf"<tr>\s*<th scope=\"row\">[^\n]*{student_id}.*?</tr>", table, re.S).group())


def shorts(assignment, evidence, score):
    return tuple(case.short for case in cases(assignment, evidence, score) if case.short)


def test_page_asks_for_nothing_outside_itself(page):
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert not re.search(r"https?:|<script|<link|@import|\son\w+=|url\((?!#)", page)


def test_every_student_and_every_code_is_linked_in_the_order_of_ids_and_nothing_else_is(page, links, pairs):
    (table,) = re.findall(r'<table class="students">.*?</table>', page, re.S)
    coded = {score.student_id for evidence, score in pairs if evidence.source}
    code = {student_id: f"students/{student_id}/submission.html" for student_id in coded}
    assert code and len(code) < len(links)
    wanted = [[links[one], *([code[one]] if one in code else [])] for one in sorted(links)]
    assert re.findall(r'href="([^"]+)"', table) == [link for row in wanted for link in row]
    targets = {target for target in re.findall(r'href="([^"]+)"', page) if not target.startswith("#")}
    assert targets == {*links.values(), *code.values()}


def test_what_a_team_handed_in_is_one_submission(assignment, pairs, links, examples):
    team = tuple(sorted(score.student_id for _, score in pairs[:2]))
    together = [
        (replace(evidence, team=team, submission_digest="pair"), score) for evidence, score in pairs[:2]
    ]
    made = class_page(assignment, [*together, *pairs[2:]], links=links, generated_at=examples.WHEN)
    assert f" {len(pairs) - 1} submissions of {len(pairs)} students " in words(made)


def test_the_nodes_of_a_cluster_are_named_with_what_they_examined(assignment, pairs, links, examples, page):
    assert "examined by the nodes" not in page
    names = ("lab<2>", "lab1", "lab1", "")
    examined = [
        (replace(evidence, node=node), score) for (evidence, score), node in zip(pairs, names, strict=False)
    ]
    made = class_page(assignment, examined, links=links, generated_at=examples.WHEN)
    assert "examined by the nodes lab1 2, lab&lt;2&gt; 1</p>" in made


def test_every_link_within_the_page_leads_somewhere(page):
    targets = re.findall(r'href="#([^"]+)"', page)
    names = re.findall(r' id="([^"]+)"', page)
    assert "queue" in targets and set(targets) <= set(names)
    assert len(names) == len(set(names))


def test_order_of_results_does_not_matter(assignment, pairs, links, examples, page):
    assert class_page(assignment, pairs[::-1], links=links, generated_at=examples.WHEN) == page


def test_totals_are_shown_withheld_or_unknown(page):
    assert "graded 46.6 65 26.14 7.96 2.5 10 55.0 %" in row(page, "400101204")
    assert "incomplete withheld" in row(page, "400101215")
    assert "refused — 0 —" in row(page, "400101211")
    assert "graded 0 65 0 0 0 0 — " in row(page, "400101207")
    assert "not run" in row(page, "400101230")


def test_the_first_screen_says_what_is_missing_with_counts(page, pairs):
    first = words(page[: page.index("<nav")])
    assert "Not ready to hand out yet. What is missing The grader failed 1 submission " in first
    assert "Nothing in it could be graded 1 submission A required file is missing 1 submission" in first
    assert "Marks that people give 7 submissions Training was not run 1 submission" in first
    assert "Worth a look first Claimed and measured accuracy differ 3 submissions" in first
    assert status_counts(pairs) == (("graded", 6), ("incomplete", 1), ("refused", 1), ("engine error", 1))
    assert "400101211 homework.py, line 12" in words(page)


def test_a_class_is_ready_when_every_point_is_decided(assignment, class_results, examples):
    good = class_results["good"]
    lines = tuple(replace(line, points=line.points or 1.0, state="decided") for line in good.score.lines)
    done = replace(good.score, lines=lines, decided=100, total=71.0)
    assert cases(assignment, good.evidence, done) == ()
    html = class_page(assignment, [(good.evidence, done)], links={}, generated_at=examples.WHEN)
    assert "Ready to hand out" in html and "What is missing" not in html
    assert {case.cause.id for case in cases(assignment, good.evidence, good.score)} == {"marks"}


def test_an_empty_class_has_a_page(assignment, examples):
    html = class_page(assignment, [], links={}, generated_at=examples.WHEN)
    assert "There is no submission." in html and "<table" not in html


def test_a_class_in_which_nobody_has_a_result_names_those_who_are_missing(assignment, examples):
    """As where students handed in nothing yet, or all that they handed in was set aside."""
    roster = RosterRecord(source="list.csv", students=["1", "2"], missing=["1", "2"], unlisted=[], notes=[])
    download = DownloadRecord(matched=0, superseded=0, refused=0, files=[], notes=[], roster=roster)
    html = class_page(assignment, [], links={}, generated_at=examples.WHEN, download=download)
    assert '<a href="#handed-in-nothing">' in html and "On the class list, but handed in nothing" in html
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(re.findall(r' id="([^"]+)"', html))


def test_recognized_mistakes_are_counted_by_student(pairs):
    first, second, *rest = common_mistakes(pairs)
    assert (first.diagnosis, first.students) == ("missing_scale", ("400101204", "400101215"))
    assert (second.diagnosis, second.component) == ("gradients_on", "evaluate")
    assert {one.diagnosis for one in rest} == {"not_implemented"}


def test_flags_are_what_a_person_should_look_at(assignment, class_results):
    def of(name):
        one = class_results[name]
        return " | ".join(shorts(assignment, one.evidence, one.score)).replace("\xa0", " ")

    assert of("good") == ""
    assert of("missing_scale") == (
        "1 check could not be decided | 10 h late | 88.0 % claimed, 55.0 % measured | Weights do not fit"
    )
    assert "Missing: report" in of("incomplete")
    assert "Forbidden part used: torch.nn.MultiheadAttention" in of("forbidden")
    assert "Unofficial" in of("forbidden") and "Partial" in of("forbidden")
    assert "time limit" in of("budget")
    assert "disk space" in of("engine_error")


def test_a_flagged_part_is_for_a_person_to_decide(assignment, class_results):
    one = class_results["forbidden"]
    name = "torch.nn.functional.scaled_dot_product_attention"
    use = replace(one.evidence.forbidden[0], rule=name, name=name)
    told = shorts(assignment, replace(one.evidence, forbidden=(use,)), one.score)
    assert f"Decide about: {name}" in told
    assert not any(flag.startswith("Forbidden part used") for flag in told)


def test_a_check_that_passed_with_a_remark_is_for_a_person_to_decide(assignment, class_results, with_remark):
    one = class_results["good"]
    assert shorts(assignment, with_remark(one.evidence, 2), one.score) == ("Decide about: fixed positions",)
    unnamed = replace(with_remark(one.evidence, 1), findings=())
    assert shorts(assignment, unnamed, one.score) == ()


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
    assert html.count("&lt;script&gt;") >= 4


@pytest.mark.parametrize(
    "link",
    [
        *("../secret/report.html", "students/../../secret/report.html", "..\\secret/report.html"),
        *("%2e%2e/secret/report.html", "/secret/report.html", "file:secret/report.html"),
    ],
)
@pytest.mark.parametrize("top", ["", "../"])
def test_links_that_leave_the_folder_are_not_there(assignment, class_results, examples, link, top):
    """Only a page that lies in a folder of its own may say how far up its links begin."""
    one = class_results["refused"]
    student_id, pairs = one.score.student_id, [(one.evidence, one.score)]

    def made(report):
        links = {student_id: report}
        return class_page(
            assignment, pairs, links=links, attention=links, generated_at=examples.WHEN, top=top
        )

    assert "secret" not in made(f"{top}{link}")
    assert f'href="{top}students/1/report.html"' in made(f"{top}students/1/report.html")


@pytest.fixture(scope="module")
def drawn(large, examples, assignment):
    """A class of so many, drawn at random with a fixed seed, as a page."""

    def made(size):
        pairs = large.a_large_class(examples, assignment, size)
        links = {score.student_id: f"students/{score.student_id}/report.html" for _, score in pairs}
        return class_page(assignment, pairs, links=links, generated_at=examples.WHEN)

    return made


@pytest.mark.parametrize("size", [1, 2, 40, 200])
def test_a_class_of_any_size_has_a_page_that_nests_without_a_stray_value(drawn, size):
    html = drawn(size)
    assert not re.search(
        r"[>\s(](None|nan|inf|NaN)[\s<,)]", re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    )
    for table in re.findall(r"<table.*?</table>", html, re.S):
        cells = {len(re.findall(r"<t[hd]\b", line)) for line in re.findall(r"<tr>.*?</tr>", table, re.S)}
        assert len(cells) == 1, "every row of a table has as many cells as its head"
    opened = re.findall(r"<(section|div|ul|li|details|table|figure|svg)\b", html)
    closed = re.findall(r"</(section|div|ul|li|details|table|figure|svg)>", html)
    assert sorted(opened) == sorted(closed)


def test_a_large_class_is_shown_in_little_space(drawn):
    assert len(drawn(200)) < 600_000


def test_a_class_that_was_refused_as_a_whole_has_no_empty_tables(large, examples, assignment):
    pairs = large.all_refused(examples, assignment, 12)
    html = class_page(assignment, pairs, links={}, generated_at=examples.WHEN)
    told = words(html)
    assert "Nothing in it could be graded 12 submissions" in told and "No accuracy was measured." in told
    assert "The points of each item" not in told and "How the checks went" not in told
    assert "<svg" not in html


def test_without_training_there_is_no_scatter_and_losses_that_are_no_numbers_do_not_show(
    assignment, class_results, examples
):
    one = class_results["not_trained"]
    html = class_page(assignment, [(one.evidence, one.score)], links={}, generated_at=examples.WHEN)
    assert "No accuracy was measured." in html and "1 not run." in html
    good = class_results["good"]
    nan = float("nan")
    epochs = tuple(replace(epoch, train_loss=nan, test_loss=nan) for epoch in good.evidence.training.epochs)
    training = replace(good.evidence.training, epochs=epochs, accuracy=nan, seconds=nan)
    broken = replace(good.evidence, training=training, seconds={"training": nan, "checks": 2.0})
    html = class_page(assignment, [(broken, good.score)], links={}, generated_at=examples.WHEN)
    assert "No accuracy was measured." in html
    assert 'd scope="row">training' not in html and "2.0" in html


def test_charts_and_queue_show_hostile_text_and_never_obey_it(assignment, class_results, examples):
    one = class_results["good"]
    hostile = "<img src=x onerror=alert(1)>\u202e\x00"
    claim = replace(one.evidence.claim, accuracy=0.2, source=hostile)
    finding = replace(one.evidence.findings[0], message=hostile, diagnosis=hostile)
    evidence = replace(
        one.evidence,
        student_id=hostile,
        claim=claim,
        findings=(finding, *one.evidence.findings[1:]),
        notes=(Note(hostile, ask_person=True),),
        seconds={hostile: 1.0},
    )
    score = replace(one.score, student_id=hostile)
    html = class_page(
        assignment, [(evidence, score)], links={hostile: "data:text/html,x"}, generated_at=examples.WHEN
    )
    assert "<img" not in html and "data:text" not in html
    assert "\u202e" not in html and "\x00" not in html
    assert html.count("⟨U+202E⟩⟨U+0000⟩") >= 8


def test_time_is_told_by_stage_and_by_submission_with_the_slowest_first(assignment, class_results, examples):
    pairs = [
        (replace(class_results[name].evidence, seconds=seconds), class_results[name].score)
        for name, seconds in (("good", {"checks": 2.0, "training": 60.0}), ("template", {"checks": 100.0}))
    ]
    html = class_page(assignment, pairs, links={}, generated_at=examples.WHEN)
    told = words(html[html.index('<section id="time">') :])
    assert "checks 2 1 min 42 s 63 % 51.0 s 1 min 40 s training 1 1 min 00 s 37 %" in told
    assert "400101207 1 min 40 s — 1 min 40 s 400101201 2.0 s 1 min 00 s 1 min 02 s" in told


def test_the_leaderboard_names_nobody_and_orders_by_accuracy(assignment, pairs, examples, class_results):
    html = leaderboard_page(assignment, pairs, generated_at=examples.WHEN)
    assert not any(score.student_id in html for _, score in pairs)
    assert leaderboard_page(assignment, pairs[::-1], generated_at=examples.WHEN) == html
    places = re.findall(r'<th scope="row">(\d+)</th><td>([\d.]+)', html)
    assert places == [("1", "87.2"), ("1", "87.2"), ("3", "55.0"), ("3", "55.0")]
    assert 'href="leaderboard.html"' not in class_page(
        assignment, pairs, links={}, generated_at=examples.WHEN
    )
    asked = replace(assignment, leaderboard=True)
    assert 'href="leaderboard.html"' in class_page(asked, pairs, links={}, generated_at=examples.WHEN)
