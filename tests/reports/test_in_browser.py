"""Pages in Chromium: axe objects to nothing, no word is in pieces, and printing takes few sheets of paper."""

import io
import unicodedata

import pytest
from pypdf import PdfReader

pytestmark = pytest.mark.browser
WIDTHS = (390, 1280)  # CSS pixels: a phone, a laptop
# axe takes seconds for each page: what it has seen in another one is left out
ALIKE = ("report of incomplete", "report of budget", "report of forbidden", "class of 40")

# words of ordinary length that stand on more than one line; code may be broken anywhere
BROKEN_WORDS = """() => {
  const broken = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode()); ) {
    const around = text.parentElement;
    if (around.closest("svg, pre, code, .listing, .hidden") || !around.checkVisibility()) continue;
    if (getComputedStyle(around).writingMode !== "horizontal-tb") continue;
    for (const word of text.data.matchAll(/[\\p{L}\\p{N}]{2,24}/gu)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const drawn = [...range.getClientRects()].filter((box) => box.width > 0);
      if (new Set(drawn.map((box) => Math.round(box.top / 4))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"
SCROLLED = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def tab(browser):
    """A tab of a width: `tab(390)`, with the system's colors light or dark."""

    def opened(width, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(60_000)
        return page

    return opened


def printed(page):
    """The page on paper: how many sheets, and their text without spaces."""
    sheets = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
    return len(sheets), unspaced("".join(sheet.extract_text() for sheet in sheets))


def unspaced(text):
    """Without spaces and ligatures, which paper has elsewhere."""
    return "".join(unicodedata.normalize("NFKC", text).split())


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "light"), (1280, "dark")])
def test_axe_objects_to_nothing(tab, sample_pages, width, scheme):
    """With everything open; in the dark only the contrast is another."""
    from axe_playwright_python.sync_playwright import Axe

    axe, page = Axe(), tab(width, scheme)
    options = {"runOnly": ["color-contrast"]} if scheme == "dark" else None
    for name, path in sample_pages.of_every_kind().items():
        if name in ALIKE:
            continue
        page.goto(path.as_uri())
        page.evaluate(OPEN_ALL)
        told = axe.run(page, options=options).response
        assert "color-contrast" in {one["id"] for one in told["passes"]}, name
        objections = [
            (one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in told["violations"]
        ]
        assert objections == [], name
    page.close()


@pytest.mark.parametrize(("media", "width"), [("screen", 390), ("screen", 1280), ("print", 680)])
def test_no_word_is_in_pieces_and_no_page_is_wider_than_the_screen(tab, sample_pages, media, width):
    page = tab(width)
    page.emulate_media(media=media)
    for name, path in sample_pages.of_every_kind().items():
        page.goto(path.as_uri())
        page.evaluate(OPEN_ALL)
        assert page.evaluate(BROKEN_WORDS) == [], name
        if media == "screen":
            assert page.evaluate(SCROLLED) <= 0, name
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_pair_opens_where_it_is_linked_and_stands_side_by_side_where_there_is_room(
    tab, sample_pages, width
):
    page = tab(width)
    page.goto(sample_pages.similarity.as_uri())
    assert page.locator("details.pair").count() > 10 and page.locator("details[open]").count() == 0
    that_open = page.locator("details.pair > .opened").evaluate_all("all => all.map((one) => one.id)")
    page.goto(sample_pages.classes["40"].as_uri())
    linked = page.locator('a[href^="similarity.html#"]:visible').evaluate_all(
        "all => all.map((one) => one.hash)"
    )
    last = [anchor for anchor in linked if anchor[1:] in that_open][-1]
    link = page.locator(f'a[href="similarity.html{last}"]')
    students = link.locator("xpath=ancestor::li").locator(".people").inner_text().split()
    link.click()
    page.wait_for_selector("details[open]", timeout=10_000)
    opened = page.locator("details[open]")
    assert opened.count() == 1 and students[0] in opened.locator("h3").inner_text()
    assert opened.locator("summary").bounding_box()["y"] >= 0
    one, other = (
        opened.locator(".beside").first.locator("> div").nth(side).bounding_box() for side in (0, 1)
    )
    beside = one["y"] == other["y"] and one["x"] + one["width"] <= other["x"]
    assert beside == (width == 1280)
    assert beside or one["y"] + one["height"] <= other["y"]
    opened.locator("summary").click()
    assert page.locator("details[open]").count() == 0
    page.close()


def test_similar_pairs_are_printed_as_a_list_with_what_is_open(tab, sample_pages):
    page = tab(1280)
    page.goto(sample_pages.similarity.as_uri())
    sheets, told = printed(page)
    heads = page.locator(".pair h3").all_text_contents()
    assert sheets <= 2 and len(heads) > 12
    assert all(unspaced(head) in told for head in heads)
    assert "defforward" not in told
    page.locator("details.pair summary").first.click()
    assert "defforward" in printed(page)[1]
    page.close()


@pytest.mark.parametrize(
    ("name", "most"), [("good", 4), ("missing_scale", 6), ("not_trained", 3), ("refused", 1)]
)
def test_a_report_takes_few_sheets_and_keeps_what_costs_points(tab, sample_pages, name, most):
    """Also where the reader closed it; what passed is a number."""
    page = tab(1280)
    page.goto(sample_pages.reports[name].as_uri())
    wrong = page.locator(".remark .message").all_text_contents()
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = false; })")
    sheets, told = printed(page)
    assert sheets <= most
    assert all(unspaced(sentence) in told for sentence in wrong)
    if name == "missing_scale":
        assert len(wrong) > 5
        assert "3of5checkspassed" in told and "Attentionnevermixestheimagesofabatch" not in told
        assert "Allepochsasatable·notprinted" in told
    page.close()


def test_the_class_page_is_printed_whole(tab, sample_pages):
    page = tab(1280)
    page.goto(sample_pages.classes["40"].as_uri())
    sheets, told = printed(page)
    assert sheets <= 14
    students = page.locator(".students tbody th > a:first-child").all_text_contents()
    assert len(students) == 40 and all(student in told for student in students)
    heads = page.locator("h2, .cause h3").all_text_contents()
    assert len(heads) > 20 and all(unspaced(head) in told for head in heads)
    page.close()
