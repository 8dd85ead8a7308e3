"""Hostile HTML made harmless: only what sets text is kept, and pictures that are in the page already.

The page's Content-Security-Policy is a second wall: what came through could neither run nor load anything.
"""

import re

import nh3
from markupsafe import Markup

from grader.domain.formatting import printable

_TAGS = {
    *("p", "br", "hr", "div", "span", "pre", "code", "kbd", "samp", "blockquote"),
    *("b", "i", "em", "strong", "u", "s", "del", "ins", "mark", "small", "sub", "sup", "abbr"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd"),
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "img"),
}
_ATTRIBUTES = {
    "img": {"src"},
    "th": {"colspan", "rowspan"},
    "td": {"colspan", "rowspan"},
    "ol": {"start"},
    "span": {"class"},
    "div": {"class"},
}
_WITH_CONTENT = {
    *("script", "style", "template", "noscript", "iframe", "object", "svg", "math", "title", "textarea"),
    *("select", "audio", "video", "canvas"),
}
# nbconvert's names for the colors of a terminal, and for what was an error
_CLASSES = re.compile(r"ansi-[a-z]+(?:-intense)?-(?:fg|bg)|ansi-(?:bold|underline|inverse)|output_stderr")
_OWN_PICTURE = re.compile(r"data:image/jpeg;base64,[A-Za-z0-9+/]+={0,2}")
MOST_SPANNED = 50  # columns or rows, by one cell: a browser lays out each of them, also the empty ones
_SMALL_NUMBER = re.compile(r"[1-9][0-9]{0,2}")
_HEADING = re.compile(r"<h([1-6])>|</h[1-6]>")
_NO_SOURCE = re.compile(r"<img(?![^>]* src=)[^>]*>")
PICTURE_LEFT_OUT = '<span class="left-out">(a picture from elsewhere is not loaded)</span>'


def cleaned(html: str) -> Markup:
    """The HTML of a cell without scripts, styles, links, forms, frames, identifiers and loads.

    Its headings become `<div class="title-1">` and so on: they are not of the page's outline.

    Args:
        html: As it came; nothing in it is trusted.
    """
    kept = nh3.clean(
        html,
        tags=_TAGS,
        clean_content_tags=_WITH_CONTENT,
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        # what scrolls must be reached by keys
        set_tag_attribute_values={"img": {"alt": "A picture among the outputs"}, "pre": {"tabindex": "0"}},
        url_schemes={"data"},
        link_rel=None,
        strip_comments=True,
        generic_attribute_prefixes=set(),
    )
    kept = _HEADING.sub(lambda found: f'<div class="title-{found[1]}">' if found[1] else "</div>", kept)
    kept = _NO_SOURCE.sub(PICTURE_LEFT_OUT, kept)
    return Markup(printable(kept))  # nh3 escaped its text


def _attribute(tag: str, name: str, value: str) -> str | None:
    if name == "class":
        return " ".join(one for one in value.split() if _CLASSES.fullmatch(one)) or None
    if name == "src":
        return value if _OWN_PICTURE.fullmatch(value) else None
    if name in ("colspan", "rowspan"):
        return value if _SMALL_NUMBER.fullmatch(value) and int(value) <= MOST_SPANNED else None
    if name == "start":
        return value if _SMALL_NUMBER.fullmatch(value) else None
    return value
