"""The sheets: the student's has no notes and no reasons, nothing in it is alive, and each is one page."""

import io
import re
from dataclasses import replace

import pytest

from grader.domain.analyzed_program import Place, TunedValue
from grader.domain.evidence import Blame, LayerSummary, Status
from grader.domain.oral_check import OralCheck, OralFlag, OralReason
from grader.domain.submission_result import Result
from grader.reports.oral.chosen_questions import COUNT, MOST_LINES, QuestionKind, SheetQuestion
from grader.reports.oral.question_sheet import notes_page, oral_sheet, question_page
from grader.reports.student.code_lines import CodeLine
from grader.reports.student.training_charts import accuracy_curve

EVIL = "</code></pre><script>alert(1)</script><img src=x onerror=alert(2)> & \u202etxet\u202c"
CHECK = OralCheck((OralFlag(OralReason.DRAWN), OralFlag(OralReason.SIMILAR, "98 % of their code, with 400.")))
LONG = "wide " + "漢字" * 200


def sheet_of(assignment, one, check=CHECK, earlier=()):
    return oral_sheet(assignment, Result(one.evidence, one.score), earlier, check)


def test_a_student_reads_neither_notes_nor_reasons_nor_points(assignment, class_results):
    sheet = sheet_of(assignment, class_results["missing_scale"])
    page, notes = question_page(assignment, [sheet]), notes_page(assignment, [sheet])
    assert len(sheet.questions) == COUNT and page.count("<li>") == notes.count("<li>") == COUNT
    for question in sheet.questions:
        assert re.sub(r"\W", "", question.note)[:40] not in re.sub(r"<[^>]*>|\W", "", page)
        assert re.sub(r"\W", "", question.note)[:40] in re.sub(r"<[^>]*>|\W", "", notes)
    for told in ("drawn", "98 %", "similar", "Not for the student", "--outcome"):
        assert told not in page[page.index("<body>") :] and told in notes
    for text in (page, notes):
        assert "points" not in re.sub(r"<svg.*?</svg>", "", text[text.index("<body>") :], flags=re.DOTALL)
    assert page == question_page(assignment, [sheet_of(assignment, class_results["missing_scale"])])


def test_nothing_that_a_student_wrote_is_alive(assignment, class_results):
    one = class_results["missing_scale"]
    source = f'class Attention:\n    def forward(self, x):\n        return x.softmax(dim=-1), "{EVIL}"\n'
    findings = tuple(
        replace(found, status=Status.FAILED, blame=Blame.STUDENT, message=EVIL, because=None)
        for found in one.evidence.findings
    )
    evidence = replace(
        one.evidence,
        source={EVIL: source, "homework.py": source},
        code_file=f"{EVIL}.py",
        tuned=tuple(TunedValue(f"{EVIL}{number}", EVIL, Place(EVIL, 3)) for number in range(4)),
        layers=(LayerSummary(EVIL, EVIL, 5000, 1),),
        findings=findings,
        student_id="400101204",
    )
    pages = []
    for digest in "abcdefgh":  # other digests ask other questions
        result = replace(one, evidence=replace(evidence, submission_digest=digest))
        sheet = sheet_of(assignment, result, OralCheck((OralFlag(OralReason.CODE, EVIL),)))
        pages += [question_page(assignment, [sheet]), notes_page(assignment, [sheet])]
    assert any("&lt;script&gt;" in page for page in pages)
    for page in pages:
        assert not re.search(r"<(script|img|iframe)\b", page) and "\u202e" not in page


def test_a_course_in_persian_reads_persian(assignment, class_results):
    spoken = replace(assignment, language="fa")
    sheet = sheet_of(spoken, class_results["missing_scale"])
    page = question_page(spoken, [sheet])
    assert 'dir="rtl"' in page and "آزمون شفاهی" in page and "دقت شما" in page
    assert "What would you" not in page and "Which" not in page
    for text in (page, notes_page(spoken, [sheet])):
        assert all("<" not in label for label in re.findall(r'aria-label="([^"]*)"', text))
        assert f'{sheet.student_id}">' in text, "the label ends where it should"


def test_what_cannot_be_asked_about_is_said_to_the_examiner(assignment, class_results):
    sheet = sheet_of(assignment, class_results["refused"])
    assert sheet.missing == COUNT
    assert f"Only 0 of {COUNT} questions could be made" in notes_page(assignment, [sheet])
    question_page(assignment, [sheet])


# --- paper -----------------------------------------------------------------------------------------------


def fullest(assignment, one):
    """A sheet that is as full as one can be: the longest texts and lines everywhere, and a chart."""
    text = ("Why is this " * 60)[:400]
    lines = tuple(CodeLine(900 + number, LONG[:102], number == 0) for number in range(MOST_LINES))
    chart = accuracy_curve(one.evidence.training.epochs, None)
    questions = [
        SheetQuestion(
            QuestionKind.CODE, str(number), str(number), text, ("So that " * 60)[:420], lines, "a" * 60
        )
        for number in range(COUNT)
    ]
    questions[0] = replace(questions[0], chart=chart, lines=(), where="")  # as all that have a chart
    check = OralCheck(tuple(OralFlag(reason, LONG) for reason in OralReason))
    sheet = sheet_of(assignment, one, check)
    return replace(sheet, student_id="a" * 60, file="b" * 80, questions=tuple(questions))


OVERFLOW = """() => [...document.querySelectorAll('.sheet')].map(
  (sheet) => [sheet.scrollHeight - sheet.clientHeight, sheet.scrollWidth - sheet.clientWidth])"""
SCROLLED = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "fa"])
def test_each_sheet_is_one_page_of_paper(browser, assignment, class_results, tmp_path, language):
    from pypdf import PdfReader

    spoken = replace(assignment, language=language)
    sheets = [fullest(spoken, class_results["good"])]
    sheets += [sheet_of(spoken, class_results[name]) for name in ("good", "missing_scale", "refused")]
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.emulate_media(media="print")
    for name, text in (("questions", question_page(spoken, sheets)), ("notes", notes_page(spoken, sheets))):
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        page.goto((tmp_path / f"{name}.html").as_uri())
        assert page.evaluate(OVERFLOW) == [[0, 0]] * len(sheets), name
        paper = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
        assert len(paper) == len(sheets), name
        width, height = (
            float(side) / 72 * 25.4 for side in (paper[0].mediabox.width, paper[0].mediabox.height)
        )
        assert (round(width), round(height)) == (210, 297)
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "light"), (1280, "dark")])
def test_axe_objects_to_nothing_on_a_screen(browser, assignment, class_results, tmp_path, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    sheets = [sheet_of(assignment, class_results[name]) for name in ("good", "missing_scale")]
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for name, text in (
        ("questions", question_page(assignment, sheets)),
        ("notes", notes_page(assignment, sheets)),
    ):
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        page.goto((tmp_path / f"{name}.html").as_uri())
        told = Axe().run(page).response
        objections = [
            (one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in told["violations"]
        ]
        assert objections == [], name
        assert page.evaluate(SCROLLED) <= 0, name
    page.close()
