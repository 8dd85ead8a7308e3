from datetime import UTC, datetime, timedelta, timezone

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from grader.domain.program import Place
from grader.reporting import typesetting


@pytest.mark.parametrize(
    ("value", "text"), [(None, "—"), (0, "0"), (41.5, "41.5"), (7.0, "7"), (1 / 3, "0.33"), (-0.001, "0")]
)
def test_points(value, text):
    assert typesetting.points(value) == text


def test_percent_never_prints_an_unknown_share_as_a_number():
    assert typesetting.percent(0.552) == "55.2\N{NO-BREAK SPACE}%"
    assert typesetting.percent(None) == "—"
    assert typesetting.percent(float("nan")) == "not a number"


def test_stamp_is_in_the_moments_own_zone():
    tehran = timezone(timedelta(hours=3, minutes=30))
    assert typesetting.stamp(datetime(2026, 11, 20, 14, 5, tzinfo=tehran)) == "2026-11-20 14:05 UTC+03:30"
    assert typesetting.stamp(datetime(2026, 11, 20, 14, 5, tzinfo=UTC)) == "2026-11-20 14:05 UTC"
    assert typesetting.stamp(datetime(2026, 11, 20, 14, 5)) == "2026-11-20 14:05"


def test_duration_and_quantity():
    space = "\N{NO-BREAK SPACE}"
    assert typesetting.duration(0.44).replace(space, " ") == "0.4 s"
    assert typesetting.duration(131).replace(space, " ") == "2 min 11 s"
    assert typesetting.duration(3725).replace(space, " ") == "1 h 02 min"
    assert typesetting.quantity(499462) == "499,462"
    assert typesetting.quantity(float("inf")) == "not finite"


def test_lists_read_as_a_sentence():
    assert typesetting.listed(["a"]) == "a"
    assert typesetting.listed(["a", "b", "c"]) == "a, b and c"
    assert typesetting.listed(list("abcdefgh"), 6) == "a, b, c, d, e, f and 2 more"


def test_characters_that_deceive_are_shown_by_their_number():
    assert typesetting.printable("a\u202eb\x1b[31m\x00\ud800") == "a⟨U+202E⟩b⟨U+001B⟩[31m⟨U+0000⟩⟨U+D800⟩"
    persian = "می\u200cخواهم"
    assert typesetting.printable(persian) == persian
    assert typesetting.printable("a\r\nb\tc") == "a\nb\tc"


def test_prose_sets_code_and_escapes_all_else():
    code = '<code dir="ltr">{}</code>'
    assert typesetting.prose("use `a < b` & so") == Markup(f"use {code.format('a &lt; b')} &amp; so")
    assert typesetting.prose("`<b>`") == Markup(code.format("&lt;b&gt;"))
    assert typesetting.prose("an odd ` <b>") == Markup("an odd ` &lt;b&gt;")
    assert typesetting.prose("x" * 1000, 10) == Markup("xxxxxxxxxx …")


def test_prose_sets_quotations_apart_and_what_is_cut_within_one_stays_within():
    quote = '“<q dir="auto">{}</q>'
    assert typesetting.prose("it says “<b> سلام”.") == Markup(f"it says {quote.format('&lt;b&gt; سلام')}”.")
    assert typesetting.prose("it says “yes, and more”", 14) == Markup(f"it says {quote.format('yes, …')}")
    assert typesetting.prose("`a “b` c”") == Markup('<code dir="ltr">a “b</code> c”')


def test_pages_escape_refuse_unknown_names_and_never_print_none():
    environment = typesetting.environment()
    assert environment.from_string("{{ a }}").render(a="<b>\u202e") == "&lt;b&gt;⟨U+202E⟩"
    assert environment.from_string("{{ a }}").render(a=None) == "—"
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nothing }}").render()


def test_a_place_in_the_graded_file_is_its_line():
    assert typesetting.within(Place("homework.py", 41), "homework.py") == "line 41"
    assert typesetting.within(Place("cell 4", 3), "homework.ipynb") == "cell 4, line 3"
