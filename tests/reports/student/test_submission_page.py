"""The page of a submission: findings at their lines, links that resolve, and nothing in it that acts."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader.analysis.view import viewed
from grader.domain.analyzed_program import Claim, ForbiddenUse, Omission, Place, TunedValue
from grader.domain.evidence import Blame, Finding, Status
from grader.domain.program_run import Pried, Prying
from grader.domain.submission import CellKind, View, ViewCell, plain_lines
from grader.files.file_names import SUBMISSION_PAGE, beside
from grader.files.stored_records import VIEW_FILE, view_bytes, view_in
from grader.reports.student.code_lines import CodeLinks, without_links
from grader.reports.student.student_pages import student_pages
from grader.reports.student.submission_page import (
    LONGEST,
    MOST_LINES,
    NOT_RENDERED,
    cleaned,
    shown_submission,
    submission_page,
)

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "article", "footer"),
    *("h1", "h2", "h3", "p", "div", "span", "b", "code", "pre", "ul", "ol", "li", "a", "img", "em", "strong"),
    *("table", "thead", "tbody", "tr", "th", "td", "blockquote", "br", "hr", "del", "q"),
}
ATTRIBUTES = {"id", "class", "dir", "lang", "href", "src", "alt", "content", "name", "charset", "http-equiv"}
ATTRIBUTES |= {"tabindex", "role", "aria-label"}
PICTURE = base64.b64encode(b"\xff\xd8\xff").decode()

# what a notebook may hold that would run, load, send or deceive: in Markdown, in outputs, or sent by a parser
VECTORS = [
    "<script>alert(1)</script>",
    "<script src=https://evil.example/x.js></script>",
    "<img src=x onerror=alert(1)>",
    "<img src=https://evil.example/pixel.png>",
    "![pixel](https://evil.example/pixel.png)",
    "![here](attachment:a.png)",
    "![file](file:///etc/passwd)",
    "<img src='data:image/svg+xml;base64,PHN2Zz48L3N2Zz4='>",
    "<img srcset='https://evil.example/a 1x' src=''>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<math><mi xlink:href='javascript:alert(1)'>x</mi></math>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=evil.swf></object><embed src=evil.swf>",
    "<form action=https://evil.example><input autofocus onfocus=alert(1)><button>Log in</button></form>",
    "[link](javascript:alert(1))",
    "[link](data:text/html;base64,PHNjcmlwdD4=)",
    "[link](https://evil.example)",
    "<a href='jAvAsCrIpT:alert(1)' target=_blank ping=https://evil.example>x</a>",
    "<style>@import url(https://evil.example/a.css); body { display: none }</style>",
    "<link rel=stylesheet href=https://evil.example/a.css>",
    "<div style='background: url(https://evil.example/a.png); position: fixed'>x</div>",
    "<base href=https://evil.example/><meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<video src=https://evil.example/a.mp4 autoplay></video><audio src=https://evil.example/a></audio>",
    "<details open ontoggle=alert(1)><summary>x</summary></details>",
    "<template><script>alert(1)</script></template><noscript><p title='</noscript><script>x</script>'>",
    "<p id='cell-2-line-1' class='row bad remark' onclick=alert(1)>not a finding</p>",
    "<!--<script>alert(1)</script>--><![CDATA[<script>alert(1)</script>]]>",
    "</div></article></section></main><h1>Grade: 100</h1>",
    "<textarea><img src=x onerror=alert(1)></textarea><xmp><script>alert(1)</script></xmp>",
    "$$\\href{javascript:alert(1)}{x}$$ \\(\\unicode{x}\\)",
]


class Page(HTMLParser):
    """A page's tags with their attributes; every tag that is opened is closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "br", "hr", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def ids(self):
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def links(self):
        return [attributes["href"] for tag, attributes in self.tags if tag == "a"]

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def assert_harmless(html):
    """Only known tags, attributes and addresses."""
    page = Page(html)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in html
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert "@import" not in style and "url(" not in style.replace("url(#hatch)", "")
    for tag, attributes in page.tags:
        assert tag in TAGS and set(attributes) <= ATTRIBUTES, (tag, attributes)
        assert tag == "img" or "src" not in attributes
        assert attributes.get("src", "data:image/jpeg;base64,").startswith("data:image/jpeg;base64,")
        assert tag == "a" or "href" not in attributes
        assert attributes.get("tabindex", "0") == "0" and attributes.get("role", "region") == "region"
        assert attributes.get("http-equiv", "Content-Security-Policy") == "Content-Security-Policy"
    assert len(set(page.ids)) == len(page.ids)
    assert {link for link in page.links if not link.startswith("#")} == {"report.html"}
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    return page


@pytest.fixture(scope="session")
def page_of(assignment, examples):
    """(Result, View or None, changes of the evidence) -> the page."""

    def made(one, view=None, **changes):
        evidence = replace(one.evidence, **changes)
        shown = shown_submission(assignment, evidence, one.score, view)
        return submission_page(assignment, evidence, shown, generated_at=examples.WHEN)

    return made


@pytest.fixture(scope="session")
def graded(class_results):
    return class_results["missing_scale"]


def notebook_of(sources, outputs=()):
    cells = [{"cell_type": "markdown", "source": source} for source in sources]
    cells.append({"cell_type": "code", "source": "x = 1", "outputs": list(outputs)})
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


def test_nothing_active_survives_rendering(page_of, graded):
    data = [{"output_type": "display_data", "data": {"text/html": one}} for one in VECTORS]
    data += [{"output_type": "display_data", "data": {"image/svg+xml": one}} for one in VECTORS]
    data += [{"output_type": "stream", "text": one} for one in VECTORS]
    data += [{"output_type": "error", "ename": "E", "evalue": "", "traceback": [one]} for one in VECTORS]
    view = viewed("a.ipynb", notebook_of(VECTORS, data))
    page = assert_harmless(page_of(graded, view, source=None))
    assert page.text.count("a picture from elsewhere is not loaded") >= 6
    assert [link for link in page.links if "evil" in link] == []


@pytest.mark.parametrize("vector", VECTORS)
def test_nothing_active_survives_though_a_parser_sends_it(page_of, graded, vector):
    lines = plain_lines(vector)
    hostile = tuple(tuple(('x" onclick="alert(1)', text) for _, text in line) for line in lines)
    cells = (
        ViewCell("cell 1", CellKind.TEXT, (), vector),
        ViewCell("cell 2", CellKind.CODE, hostile, f"<div>{vector}</div>"),
        ViewCell(vector, CellKind.RAW, lines, vector),
    )
    page = assert_harmless(page_of(graded, View(vector, cells, (vector,)), source=None, code_file=vector))
    assert vector.split("\n")[0] in "".join(page.words)


def test_text_pictures_and_a_terminals_colors_survive():
    html = (
        f'<h2 id="x">Title</h2><p>A <em>b</em> <code>c</code></p><img src="data:image/jpeg;base64,{PICTURE}">'
        '<table><tr><td colspan="2" colspan="9999">d</td></tr></table><pre class="a ansi-bold">'
        '<span class="ansi-red-fg row">e</span>\u202ef</pre>'
    )
    assert cleaned(html) == (
        '<div class="title-2">Title</div><p>A <em>b</em> <code>c</code></p>'
        f'<img src="data:image/jpeg;base64,{PICTURE}" alt="A picture among the outputs">'
        '<table><tbody><tr><td colspan="2">d</td></tr></tbody></table><pre tabindex="0">'
        '<span class="ansi-red-fg">e</span>⟨U+202E⟩f</pre>'
    )


@pytest.mark.parametrize(
    ("asked", "kept"), [("1", True), ("50", True), ("51", False), ("999", False), ("0x9", False)]
)
@pytest.mark.parametrize("name", ["colspan", "rowspan"])
def test_a_cell_spans_few_columns_and_rows(name, asked, kept):
    """A browser lays out every one that is spanned: 999 rows of 999 columns take it a minute."""
    assert (f'{name}="{asked}"' in cleaned(f'<table><tr><td {name}="{asked}">x</td></tr></table>')) is kept


def test_what_hides_in_code_is_shown_where_it_stands(page_of, graded):
    """Also what would be left out of a sentence; Persian stays as it is written."""
    code = "x = 1  # \u202e\u2066 می\u200cخواهم سلام\u200f!\ny = '\U000e0041\u200b\u00ad'  # ❤\ufe0f"
    html = page_of(graded, None, source={"homework.py": code})
    for shown in (
        "⟨U+202E⟩⟨U+2066⟩",
        "می\u200cخواهم",
        "سلام⟨U+200F⟩!",
        "⟨U+E0041⟩⟨U+200B⟩⟨U+00AD⟩",
        "⟨U+FE0F⟩",
    ):
        assert shown in html
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\U000e0000-\U000e007f]", html)


def test_what_a_notebook_shows_stands_in_a_frame_that_says_whose_it_is(page_of, graded):
    note = "<blockquote><b>Note of the grader</b>: full marks</blockquote>"
    view = View(
        "a.ipynb", (ViewCell("cell 1", CellKind.TEXT, (), note), ViewCell("cell 2", CellKind.CODE, (), note))
    )
    page = page_of(graded, view, source=None)
    frames = re.findall(
        r'<div class="as-handed-in"><p>(\w+), as handed in</p>.*?</div></div>', page, re.DOTALL
    )
    assert frames == ["Text", "Output"]
    outside = re.sub(r'<div class="as-handed-in">.*?</div></div>', "", page, flags=re.DOTALL)
    assert "Note of the grader" in page and "Note of the grader" not in outside


def test_findings_about_no_line_are_counted(page_of, graded):
    findings = [
        Finding(f"check_{number}", "Attention", "", Status.FAILED, message=text)
        for number, text in enumerate(("one", "two", "", "four"))
    ]
    findings[3] = replace(findings[3], where="a.py:1")
    page = Page(page_of(graded, source={"a.py": "x = 1"}, findings=tuple(findings)))
    assert "2 further findings about no single line" in page.text


def test_every_finding_stands_below_its_line_and_the_list_leads_there(page_of, graded):
    source = {"homework.py": "import timm\nx = 1\n\nlearning_rate = 3\nplt.show()\n"}
    student, failed = Blame.STUDENT, Status.FAILED
    findings = (
        Finding("a", "Attention", "It is scaled", failed, student, "missing_scale", "No scale.", "Divide.",
                "homework.py:2"),
        Finding("b", "ViT", "It learns them", Status.PASSED, message="They are fixed.",
                where="homework.py:4", policy="fixed_positions"),
        Finding("c", "ViT", "Nowhere", failed, student, None, "Gone.", where="homework.py:99"),
        Finding("d", "ViT", "Anywhere", failed, student, None, "No line."),
    )  # fmt: skip
    html = page_of(
        graded,
        source=source,
        findings=findings,
        code_file="homework.py",
        forbidden=(ForbiddenUse("timm*", "timm", Place("homework.py", 1), ("ViT",)),),
        pried=(Pried(Prying.FRAMES, Place("homework.py", 3), "ViT"), Pried(Prying.MEMORY, None, "ViT")),
        tuned=(TunedValue("learning_rate", "3", Place("homework.py", 4)),),
        omissions=(Omission(Place("homework.py", 5), "plt.show()", "it draws"),) * 3,
    )
    page = assert_harmless(html)
    rows = re.split(r'(?=<div class="row)', html.split('class="listing"')[1])[1:]
    below = {int(re.search(r'id="line-(\d+)"', row)[1]): row for row in rows}
    assert sorted(below) == [1, 2, 3, 4, 5, 6]
    assert "timm" in below[1] and "No scale." in below[2] and "Divide." in below[2]
    assert "missing_scale" not in html and 'class="row bad"' in below[2]
    assert "When it ran, this line looks at running functions" in below[3]
    assert 'class="beneath"' not in below[6]
    assert "They are fixed." in below[4] and "learning rate" in below[4] and 'class="row good"' in below[4]
    assert below[5].count("it draws") == 1 and 'class="row"' in below[5]
    contents = html.split("<h2>Findings at their lines</h2>")[1].split("</section>")[0]
    assert re.findall(r'href="#([^"]+)"', contents) == ["line-2", "line-4", "line-1", "line-3"]
    assert "Gone." in contents and "1\N{NO-BREAK SPACE}further finding about no single line" in contents
    assert "line-2" in page.ids


def test_a_claim_stands_at_the_cell_whose_output_says_it(page_of, graded):
    claim = Claim(0.95, "In [1], cell 2", "accuracy <b>95 %</b>", cell="In [1], cell 2")
    one = replace(graded, score=replace(graded.score, claim=claim))
    html = page_of(one, viewed("a.ipynb", notebook_of(["text"])), source=None)
    assert "accuracy &lt;b&gt;95 %&lt;/b&gt;" in html.split('id="cell-2"')[1]
    assert 'href="#cell-2"' in html


def test_links_of_the_report_lead_to_lines_of_the_page(assignment, class_results, examples):
    with_code = 0
    for one in class_results.values():
        pages = student_pages(assignment, one.evidence, one.score, one.images, examples.WHEN)
        report = Page(pages["report.html"].decode())
        outward = [link for link in report.links if not link.startswith("#")]
        assert (SUBMISSION_PAGE in pages) == bool(one.evidence.source) == bool(outward)
        if SUBMISSION_PAGE in pages:
            with_code += 1
            ids = set(assert_harmless(pages[SUBMISSION_PAGE].decode()).ids)
            assert {link.partition("#")[0] for link in outward} == {SUBMISSION_PAGE}
            assert {link.partition("#")[2] for link in outward} - {""} <= ids
    assert with_code > 3


def test_a_report_that_is_sent_alone_has_no_link_to_its_neighbor(assignment, graded, examples):
    pages = student_pages(assignment, graded.evidence, graded.score, graded.images, examples.WHEN)
    report = pages["report.html"].decode()
    sent = without_links(report)
    assert SUBMISSION_PAGE in report and SUBMISSION_PAGE not in sent
    assert "".join(Page(sent).words) == "".join(Page(report).words)


def test_a_file_that_could_not_be_rendered_is_shown_by_what_the_grader_read(page_of, graded, assignment):
    html = page_of(graded, None, source={"cell 3": "x = 1\ny = '<b>'"})
    page = assert_harmless(html)
    assert NOT_RENDERED in page.text and {"cell-3", "cell-3-line-2"} <= set(page.ids)
    assert page_of(graded, None, source=None) is None
    without_source = replace(graded.evidence, source=None)
    assert not shown_submission(assignment, without_source, graded.score, None).links


def test_lines_are_those_of_the_evidence_whatever_the_view_says(page_of, graded):
    view = View("a.py", (ViewCell("a.py", CellKind.CODE, plain_lines("one\ntwo\nthree")),))
    html = page_of(graded, view, source={"a.py": "graded\nlines"})
    assert "graded" in html and "three" not in html


def test_work_in_several_files_has_a_place_for_each_line(page_of, graded):
    finding = Finding("b", "ViT", "It learns them", Status.FAILED, message="Fixed.", where="parts/vit.py:2")
    source = {"homework.py": "from parts import vit\nx = 1\n", "parts/vit.py": "# the model\nwrong = 2\n"}
    page = assert_harmless(page_of(graded, None, source=source, findings=(finding,)))
    assert {"code", "line-2", "code-2", "code-2-line-2"} <= set(page.ids)
    assert "#code-2-line-2" in page.links


def test_very_long_code_is_cut_and_says_so(page_of, graded):
    html = page_of(graded, None, source={"a.py": "x\n" * (MOST_LINES + 5), "b.py": "y"}, omissions=())
    assert f"Only the first {MOST_LINES} lines of code are shown." in html
    assert f'id="line-{MOST_LINES}"' in html and f'id="line-{MOST_LINES + 1}"' not in html
    wide = page_of(graded, None, source={"a.py": "x" * (LONGEST + 1)})
    assert "the line continues" in wide and "x" * LONGEST in wide and "x" * (LONGEST + 1) not in wide


def test_a_view_is_kept_as_it_is_and_another_versions_is_none():
    view = viewed("a.ipynb", notebook_of(["text"]))
    assert view_in({VIEW_FILE: view_bytes(view)}) == view and view_bytes(view) == view_bytes(view)
    assert (
        view_in({})
        is view_in({VIEW_FILE: b"nonsense"})
        is view_in({VIEW_FILE: view_bytes(view)[:-9]})
        is None
    )


def test_addresses():
    links = CodeLinks({"homework.py": 50, "In [2], cell 4": 3, "parts/vit.py": 7})
    assert links.anchor(Place("homework.py", 41)) == "line-41"
    assert links.anchor(Place("In [2], cell 4", 3)) == links.anchor(Place("cell 4", 3)) == "cell-4-line-3"
    assert links.to("parts/vit.py:7") == f"{SUBMISSION_PAGE}#code-2-line-7"
    assert beside("../students/1/report.html") == "../students/1/submission.html"
    assert beside("report.html") == SUBMISSION_PAGE and beside("") == ""
