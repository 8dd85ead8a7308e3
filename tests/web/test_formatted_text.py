"""Markdown and formulas of markers, as pages show them: nothing in them runs or loads."""

import time

import pytest

from grader.web.formatted_text import formatted, formatted_line, formula


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**All** of *it*, `x < y`.", "<strong>All</strong> of <em>it</em>, <code>x &lt; y</code>."),
        ("It costs $5 and $6.", "It costs $5 and $6."),
        ("A price of $ 5 $.", "A price of $ 5 $."),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("[here](http://example.org)", "[here](http://example.org)"),
        ("![x](http://example.org/x.png)", "![x](http://example.org/x.png)"),
        ("<http://example.org>", "&lt;http://example.org&gt;"),
    ],
)
def test_a_line(text, html):
    assert formatted_line(text) == html


def test_paragraphs_and_lists():
    assert formatted("One.\n\n* two\n* three\n") == (
        "<p>One.</p>\n<ul>\n<li>two</li>\n<li>three</li>\n</ul>\n"
    )
    assert "<h1>" not in formatted("# Not a heading")


def test_a_formula_is_drawn_without_scripts():
    line = formatted_line(r"Scale by $\sqrt{d_k}$.")
    assert line.startswith('Scale by <math display="inline"><mrow><msqrt>') and line.endswith("</math>.")
    assert '<math display="block">' in formatted(r"$$\frac{1}{2}$$")


HOSTILE = [
    r"\text{<script>alert(1)</script>}",
    r"\text{<img src=x onerror=alert(1)>}",
    r"\text{<img src='x' onerror='alert(1)'/>}",
    r"\text{</math><script>alert(1)</script>}",
    r"\href{javascript:alert(1)}{x}",
    r"\style{background:url(//example.org)}{x}",
    r"\class{x}{y}",
    r"\text{&lt;script&gt;}",
    r"\text{<annotation-xml encoding='text/html'><p>x</p></annotation-xml>}",
    r"\color{red;background:url(//example.org)}{x}",
    r"\unknown",
    r"\frac{",
    "{" * 300,
]


@pytest.mark.parametrize("source", HOSTILE)
def test_nothing_hostile_comes_out_of_a_formula(source):
    for html in (formatted(f"${source}$"), formatted_line(f"${source}$")):
        for word in ("<script", "<img", "href=", "style=", "class=", "<annotation", "onerror='"):
            assert word not in html
    assert formatted_line(f"a ${source}$").startswith("a "), "it is shown as typed, or drawn"


def test_what_is_no_formula_is_shown_as_typed():
    assert formatted_line(r"$\frac{$") == r"<code>$\frac{$</code>"
    assert formula("x" * 401) is None


def test_long_and_nested_texts_take_no_time():
    begun = time.monotonic()
    for text in ("$" * 5000, "*" * 5000, "> " * 2000, "`" * 5000, "- " * 2000, "$x" * 2500, "[" * 5000):
        formatted(text, 5000)
    assert time.monotonic() - begun < 10
