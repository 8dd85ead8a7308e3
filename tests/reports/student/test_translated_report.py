"""A student's pages in Persian: from the right, nothing of ours in English, and code from the left."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

import pytest
from jinja2 import Environment, nodes

from grader.analysis.script.training_script import NOTHING_TRAINS
from grader.domain.analyzed_program import Omission, Place, Recipe
from grader.domain.inquiry import Inquiry, InquiryOutcome
from grader.domain.oral_check import OralReason
from grader.domain.program_run import EndingLimit, Plan, Rehearsal, Stage
from grader.domain.regrade_request import RegradeRequest
from grader.language import language
from grader.language.translation import Language, Message
from grader.protocol.error_kinds import RAISED, Gap, gap_in_words
from grader.reports.student.student_pages import student_page
from grader.reports.student.submission_page import shown_submission, submission_page
from grader.reports.student.training_texts import plan_rows
from grader.reports.typesetting import TEMPLATES, environment, translated_prose
from grader.sandbox.child_processes import Exit
from grader.sandbox.process_limits import ProcessLimits
from grader.training.submitted_weights import FAULTS, WHOLE_MODEL
from tests.english_left import english_left

pytest.importorskip("babel")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGES = ("base", "macros", "student", "answers", "submission")
# units and names that are the same in every language
SAME = {"F1", "SHA-", "GPU", "PDF", "cpu"}


@pytest.fixture(scope="module")
def in_persian(assignment):
    return replace(assignment, language="fa")


@pytest.fixture(scope="module")
def pages(in_persian, pairs):
    return [
        student_page(in_persian, evidence, score, images={}, generated_at=NOW) for evidence, score in pairs
    ]


def test_a_page_is_set_from_the_right(pages):
    for page in pages:
        assert '<html lang="fa" dir="rtl">' in page


def test_code_is_set_from_the_left_and_english_says_that_it_is(pages):
    for page in pages:
        assert all('dir="ltr"' in found for found in re.findall(r"<pre[^>]*>", page))
        assert '<span lang="en" dir="ltr">' in page  # the example's own checks have no catalog
    assert re.search(r'\[dir="rtl"\] :is\([^)]*\bcode\b[^)]*\) \{ direction: ltr; \}', pages[0])
    # each text of a chart by its own words, or a number stands before the words and its % behind them
    assert '[dir="rtl"] .chart text { unicode-bidi: plaintext; }' in pages[0]


def test_nothing_of_the_pages_own_is_left_in_english(pages):
    """What stands in the templates has a translation, and none of the English is in a page."""
    persian = language("fa")
    for path in TEMPLATES.glob("*.j2"):
        if path.name.partition(".")[0].partition("_")[0] not in PAGES:
            continue
        tree = Environment(extensions=["jinja2.ext.i18n"]).parse(path.read_text("utf-8"))
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name in ("_", "gettext", "ngettext"):
                message = call.args[0]
                while isinstance(message, nodes.MarkSafe | nodes.MarkSafeIfAutoescape):
                    message = message.expr
                assert message.value in persian._exact, f"{path.name}: {message.value}"
    for page in pages:
        for heading in ("What the checks found", "Your submission", "Rubric", "Points", "Try:"):
            assert f">{heading}<" not in page


def test_no_text_of_a_template_is_unmarked():
    """Every word that stands in a template of a student's page can be translated."""
    for path in sorted(TEMPLATES.glob("*.j2")):
        if path.name.partition(".")[0].partition("_")[0] not in PAGES:
            continue
        text = re.sub(r"\{% trans.*?\{% endtrans %\}", " ", path.read_text("utf-8"), flags=re.DOTALL)
        text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", " ", text, flags=re.DOTALL)
        attributes = re.findall(r'(?:aria-label|alt|title)="([^"]*)"', text)
        words = re.findall(r"[A-Za-z][A-Za-z-]+", " ".join([re.sub(r"<[^>]*>", " ", text), *attributes]))
        assert [word for word in words if word not in SAME] == [], path.name


def test_english_is_what_the_templates_say(assignment, pairs):
    """A language in which nothing is translated has the very words of English."""
    empty = Language("en", "ltr", (Message(("nothing like it",), ("x",)),))
    evidence, score = pairs[0]
    plain = student_page(assignment, evidence, score, images={}, generated_at=NOW)
    assert '<html lang="en">' in plain
    assert "<bdi" not in plain and 'lang="en" dir' not in plain
    told = (
        environment(empty)
        .from_string("{{ _('Points') }} {% trans n=3 %}{{ n }} of them{% endtrans %}")
        .render()
    )
    assert re.sub(r"<[^>]*>", "", told) == "Points 3 of them"


def test_the_record_stays_english(in_persian, assignment, pairs):
    evidence, score = pairs[0]
    student_page(in_persian, evidence, score, images={}, generated_at=NOW)
    assert (evidence, score) == pairs[0]


def test_a_page_of_code_is_from_the_left_and_what_is_said_of_it_from_the_right(in_persian, pairs):
    made = [
        submission_page(
            in_persian, evidence, shown_submission(in_persian, evidence, score, None), generated_at=NOW
        )
        for evidence, score in pairs
    ]
    shown = [page for page in made if page and 'class="beneath"' in page]
    assert shown
    for page in shown:
        assert 'class="listing" dir="ltr"' in page
        assert '<div class="beneath" dir="rtl">' in page and '<div class="beneath">' not in page


LINE, ELSEWHERE = Place("a.py", 41), Place("b.py", 50)
STAGE = Stage(LINE, ELSEWHERE, "AdamW", "OneCycleLR", 499_462, 3, 0.001, 0.0001, per_batch=True)
BARE = Stage(None, None, "", "", 0, 1, 0.001, 0.001)
TRIED = Rehearsal((STAGE, replace(STAGE, per_batch=False, schedule="")), 2, multiply_adds=3_400_000)
PLAN = Plan(
    "model",
    "it is trained last",
    loops=(LINE, ELSEWHERE),
    seeds=(LINE,),
    validates=True,
    left_alone=(Omission(LINE, "fit()", "it trains another model than the one that counts"),),
    rehearsal=TRIED,
    widens=True,
)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        replace(PLAN, rehearsal=None, widens=False),
        replace(PLAN, rehearsal=replace(TRIED, stages=(STAGE,) * 15, complete=False)),
        replace(PLAN, rehearsal=Rehearsal((BARE,))),
        Plan(missing=NOTHING_TRAINS),
    ],
)
def test_what_a_training_does_is_told_in_persian(plan):
    """Of the English, only names, numbers and what is a word there, too, are left."""
    persian = language("fa")
    texts = [text for row in plan_rows(plan, "a.py") for text in row]
    assert {text: left for text in texts if (left := english_left(text, persian))} == {}


LIMITS, RECIPE = ProcessLimits(), Recipe()
HAPPENED = [
    *(f"It could not be trained: {gap_in_words(gap, RECIPE)}." for gap in get_args(Gap) if gap),
    *(f"It cannot be trained: {gap_in_words(gap, RECIPE)}: `ValueError`." for gap in RAISED),
    *(f"Training broke off: {LIMITS.exceeded(limit)}." for limit in get_args(EndingLimit)),
    *(
        f"The check could not be finished: {LIMITS.in_words(resource)}."
        for resource in ("memory", "file_size", "disk", "writing", "processes", "open_files")
    ),
    *(f"Training broke off: {ended.words}." for ended in (Exit(3), Exit(None, 11))),
    *(f"“a.pth”: {fault}." for fault in (*FAULTS.values(), WHOLE_MODEL)),
    "Training failed (homework.py:41): There is nothing to train yet: `ViT` is not implemented.",
    "51.6 % of the hidden test images are classified correctly (the mean of the last 3 epochs; 95 % "
    "interval: 45.4 % to 57.7 %); 60 % is asked for.",
]


@pytest.mark.parametrize("sentence", HAPPENED)
def test_what_happened_to_a_submission_is_told_in_persian(sentence):
    assert english_left(sentence, language("fa")) == []


def test_a_time_after_a_sentence_is_read_from_the_left(in_persian, pairs):
    """After Arabic letters, a browser would show the day before the month and the zone before both."""
    request = RegradeRequest("q6", "Look.", NOW, 2.0, "It stays.", NOW, 2.0)
    asked = Inquiry(1, OralReason.CODE, "Why?", "", "", NOW, "", None, InquiryOutcome.DISMISSED, "Fine.", NOW)
    evidence, score = pairs[0]
    page = student_page(
        in_persian,
        evidence,
        replace(score, requests=(request,), inquiries=(asked,)),
        images={},
        generated_at=NOW,
    )
    times = re.findall(r"<(\w+[^>]*)>2026-01-01 00:00 UTC<", page)
    assert len(times) > 4 and all('dir="ltr"' in tag for tag in times)


@pytest.mark.parametrize("hostile", ["\u202egnp.x", "<b>{passed}</b>", "a\u2066b %(id)s", "\ue000x\ue001"])
def test_hostile_text_is_as_visible_in_persian_as_in_english(hostile):
    persian = language("fa")
    told = str(translated_prose(persian, f"`f` raised “{hostile}”."))
    assert "\u202e" not in told and "\u2066" not in told and "<b>" not in told
    said = environment(persian).from_string("{% trans id=x %}Student <b>{{ id }}</b>{% endtrans %}")
    shown = said.render(x=hostile)
    assert "\u202e" not in shown and "\u2066" not in shown and "<b>{passed}" not in shown
