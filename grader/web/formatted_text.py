"""Markdown and formulas in what markers and instructors write: rubric items, comments, notes.

Markdown is rendered without HTML, links and pictures. A formula between dollar signs becomes MathML, which
browsers draw without scripts; the converter copies some of its input unescaped, so its output is taken apart
and put together again from the elements and attributes that are listed here. A formula that it cannot
convert is shown as it was typed. What students write never comes here.
"""

from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape

from grader.domain.formatting import clipped, printable

_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
# fmt: off
_ELEMENTS = frozenset((
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msqrt", "mroot", "mfrac", "msub", "msup", "msubsup",
    "munder", "mover", "munderover", "mtable", "mtr", "mtd", "mpadded", "mphantom", "menclose", "mstyle",
    "mmultiscripts", "mprescripts", "none",
))
_ATTRIBUTES = frozenset((
    "display", "stretchy", "mathvariant", "linethickness", "fence", "separator", "form", "lspace", "rspace",
    "minsize", "maxsize", "columnalign", "rowspacing", "columnspacing", "columnlines", "rowlines", "width",
    "height", "depth", "voffset", "notation", "displaystyle", "scriptlevel", "accent", "accentunder",
    "movablelimits", "symmetric",
))
# fmt: on
_LONGEST_FORMULA = 400  # characters
_DOLLAR = "$"


def formatted(text: str, length: int = 1200) -> Markup:
    """A text as HTML, with paragraphs and lists.

    Args:
        length: Characters that are shown at most.
    """
    return Markup(_markdown().render(clipped(_lines(text), length)))  # it renders no HTML of the text


def formatted_line(text: str, length: int = 600) -> Markup:
    """A text as HTML within a line, for labels and lists."""
    return Markup(_markdown().renderInline(clipped(_lines(text), length)))


@lru_cache(maxsize=2000)
def formula(source: str, *, is_block: bool = False) -> Markup | None:
    """A formula as MathML; None if it cannot be converted.

    Args:
        source: In the language of TeX.
        is_block: Whether it stands in a line of its own.
    """
    if len(source) > _LONGEST_FORMULA:
        return None
    try:
        # the converter raises errors of many kinds for what is not a formula
        root = ElementTree.fromstring(convert(source, display="block" if is_block else "inline"))
        return _rebuilt(root)
    except Exception:  # noqa: BLE001
        return None


def _rebuilt(element: ElementTree.Element) -> Markup:
    """An element of MathML, made of what is listed.

    Raises:
        ValueError: There is something else in it.
    """
    name = element.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS:
        raise ValueError(name)
    content = escape(element.text or "")
    for child in element:
        content += _rebuilt(child) + escape(child.tail or "")
    attributes = Markup("").join(
        Markup(' {}="{}"').format(key, value) for key, value in element.items() if key in _ATTRIBUTES
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), attributes, content)


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.replace("\r\n", "\n").split("\n"))


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True})
    made.disable(
        ["image", "link", "autolink", "html_inline", "html_block", "reference", "heading", "lheading"]
    )
    made.inline.ruler.before("escape", "formula", _formula_rule)
    made.add_render_rule("formula", _drawn_formula)
    return made


def _formula_rule(state: StateInline, silent: bool) -> bool:
    """A formula between single or double dollar signs; a price (`$5 and $6`) is none."""
    source, start = state.src, state.pos
    if source[start] != _DOLLAR:
        return False
    mark = _DOLLAR * 2 if source.startswith(_DOLLAR * 2, start) else _DOLLAR
    first = start + len(mark)
    end = source.find(mark, first)
    content = source[first:end] if end > 0 else ""
    after = source[end + len(mark) : end + len(mark) + 1]
    if not content.strip() or "\n\n" in content:
        return False
    if mark == _DOLLAR and (content[0].isspace() or content[-1].isspace() or after.isdecimal()):
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.markup = content, mark
    state.pos = end + len(mark)
    return True


def _drawn_formula(
    _renderer: Any, tokens: list[Token], index: int, _options: Any, _env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    made = formula(token.content.strip(), is_block=len(token.markup) > 1)
    if made is None:
        return Markup("<code>{0}{1}{0}</code>").format(token.markup, token.content)
    return made
