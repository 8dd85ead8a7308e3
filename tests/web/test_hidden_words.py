"""Names and ids are hidden however they are written, and nothing else is."""

import time

import pytest

from grader.web.hidden_words import HIDDEN, HiddenWords


def test_only_text_and_labels_are_hidden():
    html = '<p id="a1" aria-label="by A. Rad"><img src="data:rad,400">Rad, radio 400101201_x</p>'
    shown = HiddenWords.of(["400101201", "Rad", ""]).in_html(html)
    assert (
        shown
        == f'<p id="a1" aria-label="by A. {HIDDEN}"><img src="data:rad,400">{HIDDEN}, radio {HIDDEN}_x</p>'
    )


@pytest.mark.parametrize(
    ("word", "text", "shown"),
    [
        ("O'Brien", "By o'brien, O\u2019Brien and OBrien.", f"By {HIDDEN}, {HIDDEN} and {HIDDEN}."),
        ("Ahmadi", "/home/sara_ahmadi/AHMADI2.py", f"/home/sara_{HIDDEN}/{HIDDEN}2.py"),
        ("Sara Ahmadi", "SaraAhmadi_hw3, sara-ahmadi", f"{HIDDEN}_hw3, {HIDDEN}"),
        ("علي كاظمي", "نوشتهٔ علی کاظمی است", f"نوشتهٔ {HIDDEN} است"),
        ("كاظمي", "آقای کاظمــی", f"آقای {HIDDEN}"),
        ("سارا", "\ufeb3\ufe8e\ufead\ufe8d", HIDDEN),  # as a PDF may hold its letters
        ("حسین\u200cزاده", "حسینزاده", HIDDEN),
        ("Núñez", "Nu\u0301n\u0303ez, Nunez", f"{HIDDEN}, {HIDDEN}"),
        ("Griffin", "Gri\ufb03n", HIDDEN),
        ("Strauß", "STRAUSS", HIDDEN),
        ("400101201", "۴۰۰۱۰۱۲۰۱, x400101201y, ４00101201", f"{HIDDEN}, x{HIDDEN}y, {HIDDEN}"),
        ("Max", "maximum, ماکس", "maximum, ماکس"),
        ("Li", "ﬁne lines", "ﬁne lines"),
        ("!", "Yes!", "Yes!"),
    ],
)
def test_a_word_is_found_however_it_is_written(word, text, shown):
    assert HiddenWords.of([word]).in_text(text) == shown


def test_what_html_writes_in_another_way_is_found():
    words = HiddenWords.of(["O'Brien"])
    assert words.in_html("<b>&lt;O&#39;Brien&gt;</b>") == f"<b>&lt;{HIDDEN}&gt;</b>"
    assert (
        words.in_html('<p aria-label="O&#39;Brien &#34;x&#34;">') == f'<p aria-label="{HIDDEN} &#34;x&#34;">'
    )
    assert words.in_html("<b>&#60;&amp;lt;</b>") == "<b>&#60;&amp;lt;</b>", "nothing was hidden"


def test_a_long_text_takes_no_time():
    words = HiddenWords.of(["Sara Ahmadi", "Sara", "Ahmadi", "400101201"])
    began = time.perf_counter()
    words.in_html("<p>" + "sara " * 40_000 + "</p>" + "<p>سارا é</p>" * 20_000 + " _" * 100_000)
    assert time.perf_counter() - began < 5
