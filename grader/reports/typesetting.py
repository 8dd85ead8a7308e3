"""How pages are set: the Jinja environment, and sentences with quotations as HTML."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from grader.domain.formatting import (
    UNKNOWN,
    clipped,
    counted,
    duration,
    listed,
    percent,
    points,
    printable,
    quantity,
    revealed,
    round_percent,
    stamp,
    within,
)
from grader.domain.quoting import CLOSE, CODE, OPEN, quoted

TEMPLATES = Path(__file__).parent / "templates"

# what stands between `backticks` is code, what stands in “quotation marks” is a quotation
_MARKED = re.compile(f"{CODE}([^{CODE}]*){CODE}|{OPEN}([^{OPEN}{CLOSE}]*)({CLOSE}|$)")


def prose(text: str, length: int = 600) -> Markup:
    """A sentence as HTML: escaped, clipped to `length`, with what it quotes set apart from our own words.

    What stands between `backticks` becomes code, and what stands in “quotation marks” a quotation. Neither
    can change the order in which the words around it read.
    """
    shown, made, end = printable(clipped(text, length)), Markup(""), 0
    for found in _MARKED.finditer(shown):
        made += escape(shown[end : found.start()])
        if found[1] is not None:
            made += Markup('<code dir="ltr">{}</code>').format(found[1])
        else:
            made += Markup('{}<q dir="auto">{}</q>{}').format(OPEN, found[2], found[3])
        end = found.end()
    return made + escape(shown[end:])


def breakable(name: str) -> Markup:
    """A name, as HTML, that may be broken after its underscores."""
    return Markup("_<wbr>").join(map(printable, name.split("_")))


def _finalized(value: object) -> object:
    """What a `{{ }}` prints: a dash for what nobody knows, never `None`; text is made printable."""
    if value is None:
        return UNKNOWN
    return value if isinstance(value, Markup) else printable(str(value))


@cache
def environment() -> Environment:
    """The Jinja environment of all pages: everything is escaped, an unknown name is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (
        points,
        percent,
        round_percent,
        quantity,
        duration,
        stamp,
        clipped,
        prose,
        quoted,
        revealed,
        within,
        breakable,
        counted,
        listed,
    )
    made.filters.update({one.__name__: one for one in filters})
    styles = {
        "style": "style.css",
        "class_style": "class.css",
        "submission_style": "submission.css",
        "answers_style": "answers.css",
        "similarity_style": "similarity.css",
    }
    for name, file in styles.items():
        made.globals[name] = Markup((TEMPLATES / file).read_text("utf-8"))  # our own files
    return made
