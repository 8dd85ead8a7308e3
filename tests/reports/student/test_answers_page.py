"""The pages of a PDF beside what people mark: nothing acts, nothing is hidden, nobody else is named."""

import base64
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from grader.domain.score import PartScore, ScoreEdit
from grader.domain.submission import Answers, DrawnPage, Undrawn
from grader.reports.student.answers_page import answers_page, marked_items, undrawn_remarks
from grader.reports.student.code_lines import without_links
from grader.reports.student.student_pages import student_pages
from grader.reports.whole_class.class_page import class_page
from grader.reports.whole_class.review_cases import UNDRAWN, cases

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}"
WHOLE = Answers("a.pdf", "ab" * 32, 1_400_000, True, 3, 3, tuple(DrawnPage(n, 848, 1200) for n in (1, 2, 3)))
IMAGES = {f"answers-0{number}.webp": b"RIFF\x00\x00\x00\x00WEBP%d" % number for number in (1, 2, 3)}


@pytest.fixture
def page_of(assignment, class_results, examples):
    """The page of a submission with other answers, and scores."""

    def made(answers=WHOLE, images=IMAGES, change=lambda score: score):
        one = class_results["missing_scale"]
        evidence = replace(one.evidence, answers=answers)
        return answers_page(
            assignment, evidence, change(one.score), images=images, generated_at=examples.WHEN, code=True
        )

    return made


def test_every_page_is_a_picture_with_its_number_and_size(page_of):
    page = page_of()
    pictures = re.findall(r"<img [^>]*>", page)
    assert len(pictures) == 3
    for number, picture in enumerate(pictures, start=1):
        encoded = base64.b64encode(IMAGES[f"answers-0{number}.webp"]).decode()
        assert f'src="data:image/webp;base64,{encoded}"' in picture
        assert f'alt="Page {number} of 3"' in picture and 'width="848" height="1200"' in picture
        assert ('loading="lazy"' in picture) == (number > 1)
        assert f'<a href="#page-{number}">{number}</a>' in page and f'id="page-{number}"' in page
    assert page.count(">previous</a>") == page.count(">next</a>") == 2


def test_nothing_acts_or_loads(page_of):
    page = page_of()
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert not re.search(r"https?:|<script|<iframe|<object|<embed|<form|\son\w+=", page)
    assert set(re.findall(r'href="([^"#]+)"', page)) == {"report.html", "submission.html", "answers.pdf"}
    assert "at your own risk" in page


def test_what_students_write_is_text(page_of):
    page = page_of(replace(WHOLE, file=HOSTILE + ".pdf"))
    assert (
        "<script>alert" not in page and "<img src=x" not in page and "49" not in page.split("<main>")[1][:600]
    )


def test_only_pictures_of_our_own_are_shown(page_of):
    page = page_of(images={**IMAGES, "answers-02.webp": b"<svg onload=alert(1)>", "answers-03.webp": b""})
    assert page.count("<img ") == 1 and page.count("This page could not be drawn.") == 2
    assert "svg" not in page


def test_marks_and_comments_that_stand_are_beside_without_who_gave_them(page_of, assignment):
    item = next(item for item in assignment.rubric if item.by_person)
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    def marked(score):
        lines = tuple(
            replace(
                line,
                points=3.5,
                state="decided",
                reason="Marked by ta-anna.",
                comments=("Say why.", HOSTILE, "word " * 990 + "\nthe end."),
                parts=(PartScore("a", "The first part", 1.5, 2.0, ("Half of it.",)),),
                edits=(ScoreEdit("ta-anna", moment, "marked in anna.csv", 1.0, 3.5),),
            )
            if line.id == item.id
            else line
            for line in score.lines
        )
        return replace(score, lines=lines)

    page = page_of(change=marked)
    assert "word \nthe end." in page, "comments are shown to their end, in their lines"
    assert "Say why." in page and "Half of it." in page and "The first part" in page and "1.5 / 2" in page
    assert "anna" not in page and "<script>alert" not in page
    automatic = [item.title for item in assignment.rubric if not item.by_person]
    assert not any(title in page.split("<aside")[1].split("</aside>")[0] for title in automatic)


def test_items_without_a_line_are_open(assignment, class_results):
    """What was refused as a whole has no lines: people mark its PDF all the same."""
    score = replace(class_results["missing_scale"].score, lines=())
    by_person = [item for item in assignment.rubric if item.by_person]
    found = marked_items(assignment, score)
    assert [(one.title, one.points, one.maximum) for one in found] == [
        (item.title, None, item.points) for item in by_person
    ]


@pytest.mark.parametrize(
    ("answers", "sentences"),
    [
        (WHOLE, []),
        (replace(WHOLE, undrawn=Undrawn.PROTECTED, pages=None, tried=0, drawn=()), ["only with a password"]),
        (replace(WHOLE, undrawn=Undrawn.DAMAGED, pages=None, tried=0, drawn=()), ["is damaged"]),
        (replace(WHOLE, undrawn=Undrawn.ENDED, pages=9), ["more time or memory", "9 pages; the first 3 are"]),
        (replace(WHOLE, undrawn=Undrawn.FULL, pages=9), ["more space", "9 pages; the first 3 are shown"]),
        (replace(WHOLE, drawn=WHOLE.drawn[::2]), ["Page 2 could not be drawn."]),
        (replace(WHOLE, drawn=WHOLE.drawn[:1]), ["Pages 2 and 3 could not be drawn."]),
        (replace(WHOLE, pages=100_000), ["It has 100000 pages; the first 3 are shown."]),
        (replace(WHOLE, kept=False, size=41_000_000), ["too large to be kept here (41.0 MB)"]),
    ],
)
def test_what_is_not_shown_is_told_in_a_sentence_each(page_of, answers, sentences):
    page = page_of(answers).replace("\N{NO-BREAK SPACE}", " ")
    banner = page.partition("Not all of it is shown")[2].partition("</section>")[0]
    told = re.findall(r"<p>(.*?)</p>", banner)
    assert len(told) == len(sentences) and all(a in b for a, b in zip(sentences, told, strict=True))
    assert ('href="answers.pdf"' in page) == answers.kept


def test_without_a_pdf_there_is_no_page_and_nothing_is_said_of_one(
    assignment, class_results, examples, page_of
):
    assert page_of(None) is None
    one = class_results["missing_scale"]
    made = student_pages(assignment, one.evidence, one.score, IMAGES | {"answers.pdf": b"x"}, examples.WHEN)
    assert "answers.html" not in made and "answers.pdf" not in made
    assert not any(b"answers.html" in page or b"answers.pdf" in page for page in made.values())


def test_the_report_leads_there_from_the_items_that_people_mark(assignment, class_results, examples):
    one = class_results["missing_scale"]
    evidence = replace(one.evidence, answers=WHOLE)
    report = student_pages(assignment, evidence, one.score, IMAGES, examples.WHEN)["report.html"].decode()
    by_person = sum(item.by_person for item in assignment.rubric)
    assert by_person > 0 and report.count('<a href="answers.html">your answers</a>') == by_person
    assert '<a href="answers.html">Your answers, page by page</a>' in report
    sent = without_links(report)  # by Moodle, without the pages beside it
    assert "answers.html" not in sent and "your answers" in sent


def test_the_class_page_leads_there(assignment, class_results, pairs, examples):
    own = class_results["missing_scale"].evidence.student_id
    results = [(replace(e, answers=WHOLE) if e.student_id == own else e, score) for e, score in pairs]
    links = {score.student_id: f"students/{score.student_id}/report.html" for _, score in pairs}
    page = class_page(assignment, results, links=links, generated_at=examples.WHEN)
    assert re.findall(r'href="([^"]*answers[^"]*)"', page) == [f"students/{own}/answers.html"]


def test_staff_are_told_what_could_not_be_drawn_and_nobody_waits_for_it(assignment, class_results):
    one = class_results["missing_scale"]

    def told(answers):
        found = cases(assignment, replace(one.evidence, answers=answers), one.score)
        return [case for case in found if case.cause is UNDRAWN]

    assert told(WHOLE) == told(replace(WHOLE, pages=57)) == told(None) == []
    [case] = told(replace(WHOLE, undrawn=Undrawn.PROTECTED, drawn=(), tried=0, pages=None))
    assert not case.cause.holds and case.short == "Answers not all drawn" and "password" in case.text
    assert case.text == undrawn_remarks(Answers("a", "b", 1, undrawn=Undrawn.PROTECTED))[0]
