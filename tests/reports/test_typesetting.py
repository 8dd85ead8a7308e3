import base64

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from grader.domain import formatting
from grader.domain.analyzed_program import Place
from grader.reports import typesetting


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


def test_a_picture_is_there_whole_or_not_at_all():
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    uri = typesetting.data_uri({"a.png": png, "b.png": b"<b>"}, "a.png")
    kind, _, data = uri.partition(";base64,")
    assert kind == "data:image/png" and base64.b64decode(data) == png
    assert typesetting.environment().from_string("{{ uri }}").render(uri=uri) == uri
    assert typesetting.data_uri({"b.png": b"<b>"}, "b.png") == typesetting.data_uri({}, "b.png") == ""


def test_a_place_in_the_graded_file_is_its_line():
    assert formatting.within(Place("homework.py", 41), "homework.py") == "line 41"
    assert formatting.within(Place("cell 4", 3), "homework.ipynb") == "cell 4, line 3"
