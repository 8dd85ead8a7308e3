"""What readers need who do not see the page: an outline, heads of tables, pictures in words and numbers."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

VOID = {"meta", "img", "br", "hr", "wbr"}


class Outline(HTMLParser):
    """A page's elements: (tag, attributes, the tags around it)."""

    def __init__(self, html):
        super().__init__()
        self.found, self.around = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), tuple(self.around)))
        if tag not in VOID:
            self.around.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs), tuple(self.around)))

    def handle_endtag(self, tag):
        assert self.around.pop() == tag

    def all(self, *tags):
        return [(attributes, around) for tag, attributes, around in self.found if tag in tags]


@pytest.fixture(scope="module")
def outlines(sample_pages):
    return {name: Outline(path.read_text("utf-8")) for name, path in sample_pages.of_every_kind().items()}


def test_every_page_says_its_language_and_title(sample_pages):
    for name, path in sample_pages.of_every_kind().items():
        html = path.read_text("utf-8")
        assert '<html lang="en">' in html and re.search(r"<title>[^<]{12,}</title>", html), name


def test_headings_are_an_outline_within_one_main(outlines):
    for name, page in outlines.items():
        levels = [int(tag[1]) for tag, _, _ in page.found if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1, name
        assert all(after <= before + 1 for before, after in pairwise(levels)), name
        assert len(page.all("main")) == 1, name


def test_every_table_has_heads_that_say_of_what_they_are(outlines):
    for name, page in outlines.items():
        if name.startswith("submission"):
            continue  # tables of notebooks are the students'
        tables, heads = page.all("table"), page.all("th")
        assert all("scope" in attributes for attributes, _ in heads), name
        assert sum(attributes["scope"] == "col" for attributes, _ in heads) >= 2 * len(tables), name
        rows = [around for _, around in page.all("tr")]
        in_rows = [attributes for attributes, around in heads if attributes["scope"] == "row"]
        assert len(in_rows) == len([one for one in rows if "thead" not in one]), name


def test_every_picture_is_told_and_every_chart_carries_its_numbers(outlines):
    charts = 0
    for name, page in outlines.items():
        for attributes, around in page.all("svg"):
            charts += 1
            assert attributes["role"] == "img" and "svg" not in around, name
            assert re.search(r"\d", attributes["aria-label"]), (name, attributes)
        for attributes, _ in page.all("img"):
            assert len(attributes["alt"]) > 10, (name, attributes["alt"])
    assert charts > 30


def test_the_scatter_plots_stand_below_as_a_table(outlines, sample_pages):
    html = sample_pages.classes["40"].read_text("utf-8")
    dots = {
        re.match(r"(\d+): ", title)[1]
        for title in re.findall(r'<(?:circle|path) class="mark[^>]*><title>([^<]*)', html)
    }
    section = html[html.index("The numbers of these charts") :]
    table = section[: section.index("</table>")]
    assert len(dots) > 30 and dots == set(re.findall(r">(4001\d+)</a>", table))


def test_what_scrolls_is_reached_by_keys_and_links_say_where_they_go(outlines):
    for name, page in outlines.items():
        for attributes, _ in page.all("div"):
            if attributes.get("class") in ("scroll", "listing", "outputs", "prose"):
                assert attributes["tabindex"] == "0" and attributes["aria-label"], name
        links = [attributes for attributes, _ in page.all("a") if attributes.get("class") == "code"]
        assert len({one["aria-label"] for one in links}) == len(links), name


def test_a_person_is_sent_from_a_pair_of_the_queue_to_its_place(sample_pages):
    page = sample_pages.classes["40"].read_text("utf-8")
    there = set(re.findall(r' id="(pair-\d+)"', sample_pages.similarity.read_text("utf-8")))
    links = re.findall(r'href="similarity\.html#([^"]+)"', page)
    assert len(links) == len(set(links)) == len(there) > 10 and set(links) == there
