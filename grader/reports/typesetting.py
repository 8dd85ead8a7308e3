"""How pages are set: the Jinja environment, sentences as HTML, and the parts of charts.

It holds the environment of all templates, the words of each language in them, and sentences with
quotations as HTML. It also holds SVG elements with a plotting area and its axes, and pictures as data
URIs. SVG coordinates are in SVG units. On a phone, one unit is about one CSS pixel, so that 11-unit text
stays readable. It never decides what a page or a chart says: the pages and charts of students and classes
do.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unicodedata import bidirectional

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from grader.domain.assignment import Assignment
from grader.domain.formatting import (
    CLOSE,
    CODE,
    OPEN,
    UNKNOWN,
    clipped,
    counted,
    duration,
    listed,
    percent,
    points,
    printable,
    quantity,
    quoted,
    revealed,
    round_percent,
    stamp,
    within,
)
from grader.language import ENGLISH, Language, language
from grader.language.sentences import counted_pattern
from grader.language.translation import BEGIN, END, FOLDER

_PNG = b"\x89PNG\r\n\x1a\n"


def data_uri(images: Mapping[str, bytes], name: str) -> Markup:
    """A PNG as a data URI; empty when it is missing or not a PNG."""
    data = images.get(name, b"")
    return picture_uri("png", data) if data.startswith(_PNG) else Markup("")


def picture_uri(kind: str, data: bytes) -> Markup:
    """A picture as a data URI, in which there is nothing to escape.

    Args:
        kind: Of the picture, as in its MIME type: `png`.
        data: Its bytes.
    """
    return Markup(f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}")


# --- drawing ---------------------------------------------------------------------------------------------


WIDTH = 360.0


@dataclass(frozen=True)
class PlotArea:
    """The plotting area, which maps data (x, y) to SVG units."""

    x0: float
    x1: float
    y0: float
    y1: float
    left: float = 38.0
    right: float = 350.0
    top: float = 30.0
    bottom: float = 172.0

    def x(self, value: float) -> float:
        """The horizontal position of a data value."""
        span = self.x1 - self.x0
        return self.left + (self.right - self.left) * ((value - self.x0) / span if span else 0.5)

    def y(self, value: float) -> float:
        """The vertical position of a data value, kept within the frame."""
        share = min(1.0, max(0.0, (value - self.y0) / (self.y1 - self.y0)))
        return self.bottom - (self.bottom - self.top) * share


def round_values(highest: float, about: int = 4) -> list[float]:
    """Round values from 0 up to at least `highest`, about `about` steps of 1, 2 or 5 times a power of ten."""
    if highest < 1e-6:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(highest / about))
    step = next(unit * power for unit in (1, 2, 5, 10) if unit * power * about >= highest)
    return [round(step * index, 10) for index in range(math.ceil(highest / step - 1e-9) + 1)]


def axes(
    frame: PlotArea,
    ticks: Sequence[tuple[float, str]],
    x_ticks: Sequence[tuple[float, str]],
    x_name: str,
) -> Markup:
    """Horizontal grid lines with labels, and the labels and the name of the horizontal axis.

    Args:
        frame: The plotting area.
        ticks: (value, label) of each grid line.
        x_ticks: (value, label) along the horizontal axis.
        x_name: What the horizontal axis shows.
    """
    parts: list[Markup] = []
    for tick, label in ticks:
        y = frame.y(tick)
        parts.append(line(frame.left, y, frame.right, y, "axis" if tick == frame.y0 else "grid"))
        parts.append(text(frame.left - 6, y + 4, label, "label", "end"))
    parts += [text(frame.x(tick), frame.bottom + 13, label, "label", "middle") for tick, label in x_ticks]
    parts.append(text(frame.right, frame.bottom + 25, x_name, "note", "end"))
    return Markup("").join(parts)


def svg(
    height: float,
    label: str,
    parts: Sequence[Markup],
    *,
    width: float = WIDTH,
    top: float = 0.0,
    css: str = "",
) -> Markup:
    """An SVG image with a description for those who cannot see it."""
    return Markup(
        '<svg class="chart {}" viewBox="0 {} {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="{}"><title>{}</title>{}</svg>'
    ).format(
        css,
        coordinate(top),
        coordinate(width),
        coordinate(height),
        label,
        "none" if css == "bar" else "xMidYMid meet",
        label,
        Markup("").join(parts),
    )


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    """A straight line; the class of this and of all shapes is ours."""
    ends = f'x1="{coordinate(x1)}" y1="{coordinate(y1)}" x2="{coordinate(x2)}" y2="{coordinate(y2)}"'
    return Markup(f'<line class="{css}" {ends}/>')


def rect(x: float, y: float, width: float, height: float, css: str) -> Markup:
    """A rectangle, by its upper left corner."""
    place = f'x="{coordinate(x)}" y="{coordinate(y)}"'
    return Markup(f'<rect class="{css}" {place} width="{coordinate(width)}" height="{coordinate(height)}"/>')


def text(x: float, y: float, words: str, css: str, anchor: str = "start") -> Markup:
    """Words at a place; characters that would hide or reorder them are shown by their numbers."""
    place = f'x="{coordinate(x)}" y="{coordinate(y)}" text-anchor="{anchor}"'
    return Markup(f'<text class="{css}" {place}>{escape(printable(words))}</text>')


def coordinate(value: float) -> str:
    """A coordinate with one digit after the point, the same on every machine."""
    return f"{round(value, 1) + 0.0:g}"


# --- typesetting -----------------------------------------------------------------------------------------


TEMPLATES = Path(__file__).parent / "templates"

# text between `backticks` is code, text in “quotation marks” is a quotation
_MARKED = re.compile(f"{CODE}([^{CODE}]*){CODE}|{OPEN}([^{OPEN}{CLOSE}]*)({CLOSE}|$)")
_TAKEN_OVER = re.compile(f"{BEGIN}([^{BEGIN}{END}]*){END}")
_FROM_LEFT = ' dir="ltr"'


def prose(text: str, length: int = 600) -> Markup:
    """A sentence as HTML: escaped, clipped to `length`, with what it quotes set apart from our own words.

    Text between `backticks` becomes code, and text in “quotation marks” a quotation. Neither can change the
    order in which the words around it read.
    """
    shown, end = printable(clipped(text, length)), 0
    pieces: list[str] = []
    for marked in _MARKED.finditer(shown):
        pieces.append(escape(shown[end : marked.start()]))
        if marked[1] is not None:
            pieces.append(f'<code dir="ltr">{escape(marked[1])}</code>')
        else:
            pieces.append(f'{OPEN}<q dir="auto">{escape(marked[2])}</q>{marked[3]}')
        end = marked.end()
    pieces.append(escape(shown[end:]))
    return Markup("".join(pieces))  # escaped one by one


def breakable(name: str) -> Markup:
    """A name as HTML that may be broken after its underscores."""
    return Markup("_<wbr>").join(map(printable, name.split("_")))


def _finalized(value: object) -> object:
    """What a `{{ }}` prints: a dash for an unknown value, never `None`; text is made printable."""
    if isinstance(value, Markup):
        return value
    return UNKNOWN if value is None else printable(str(value))


def language_of(assignment: Assignment) -> Language:
    """The language of an assignment's reports, with the translations of its course and its own."""
    if assignment.language == ENGLISH.code:
        return ENGLISH
    course = assignment.folder.parents[1] if len(assignment.folder.parents) > 1 else assignment.folder
    return language(assignment.language, (course / FOLDER, assignment.folder / FOLDER))


def isolated(text: Markup) -> Markup:
    """A translation in which untranslated parts cannot change the order of the words around them."""
    return Markup(_TAKEN_OVER.sub(lambda match: _isolate(match[1]), str(text)))  # within what is escaped


def _isolate(html: str) -> str:
    """HTML for use within a sentence of another direction; numbers and names run from left to right."""
    words = re.sub(r"<[^>]*>", "", html)
    first = next((letter for letter in words if bidirectional(letter) in ("L", "R", "AL")), "")
    return f"<bdi{'' if first and bidirectional(first) != 'L' else _FROM_LEFT}>{html}</bdi>"


def translated_prose(language: Language, text: str, length: int = 600) -> Markup:
    """A sentence of ours as HTML in a language; what has no translation is marked as English.

    In English this is `prose`.
    """
    if language.is_english or not text.strip():
        return prose(text, length)
    made = []
    for piece in language.pieces(text):
        if piece.translated:
            made.append(isolated(prose(piece.text, 4 * length)))
        else:
            words = prose(piece.text, length)
            if re.search(r"[A-Za-z]{2}", piece.text):
                words = Markup('<span lang="en" dir="ltr">{}</span>').format(words)
            made.append(words)
    return Markup(" ").join(made)


def _gettext_functions(language: Language) -> dict[str, Callable[..., Markup]]:
    """`gettext` and `ngettext` for the pages; their values are escaped, made printable and isolated."""

    def shown(value: object) -> Markup:
        printed = escape(_finalized(value))
        return printed if language.is_english or not printed else Markup(_isolate(str(printed)))

    def filled(message: str, values: Mapping[str, object]) -> Markup:
        # not by `Markup`'s own `%`, which would escape a second time
        return Markup(str(message) % {name: shown(value) for name, value in values.items()})

    @cache
    def fixed(message: str) -> Markup:
        return Markup(language.gettext(message))  # a catalog is a file of the course's

    def gettext(message: str, **values: object) -> Markup:
        made = fixed(message)
        if not values and "%" not in made:
            return made
        return filled(made, values)

    def ngettext(singular: str, plural: str, num: int, **values: object) -> Markup:
        return filled(language.ngettext(singular, plural, num), {"num": num, **values})

    return {"gettext": gettext, "ngettext": ngettext, "_": gettext}


def flat(text: str) -> str:
    """A text of a page, for an attribute or a title, where nothing can be isolated."""
    return type(text)(re.sub(r'<bdi( dir="ltr")?>|</bdi>', "", str(text)))


def _language_filters(language: Language) -> dict[str, Callable[..., object]]:
    """Filters whose words are the language's."""

    def translated(text: str, length: int = 600) -> Markup:
        return translated_prose(language, text, length)

    def worded(text: str) -> str | Markup:
        return text if language.is_english else translated_prose(language, text, 4_000)

    def plainly(text: str) -> str:
        return language.translated(text)

    def counted_in(number: int, noun: str, plural: str = "") -> str | Markup:
        english = counted(number, noun, plural)
        if language.is_english:
            return english
        form = language.ngettext(*counted_pattern(noun, plural), number)
        return Markup("{}").format(form.replace("{number}", str(number)))

    return {"translated": translated, "worded": worded, "plainly": plainly, "counted": counted_in}


@cache
def environment(language: Language = ENGLISH) -> Environment:
    """The Jinja environment of all pages: everything is escaped, and an unknown name is an error.

    Args:
        language: The language that the pages are written in.
    """
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
        auto_reload=False,  # or each page would look at some twenty files
    )
    made.newstyle_gettext = True  # type: ignore[attr-defined]  # of the extension: it passes values on
    made.policies["ext.i18n.trimmed"] = True
    made.globals.update(_gettext_functions(language))
    made.globals["language"] = language
    # within a listing of code, which runs from left to right
    made.globals["onward"] = Markup(' dir="rtl"') if language.direction == "rtl" else ""
    # the direction of a sentence of ours; in English it may consist entirely of somebody else's words
    made.globals["auto"] = Markup(' dir="auto"') if language.is_english else ""
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
        listed,
        flat,
    )
    made.filters.update({function.__name__: function for function in filters})
    made.filters.update(_language_filters(language))
    styles = {
        "style": "style.css",
        "class_style": "class.css",
        "submission_style": "submission.css",
        "answers_style": "answers.css",
        "similarity_style": "similarity.css",
        "oral_style": "oral.css",
    }
    for name, file in styles.items():
        made.globals[name] = Markup((TEMPLATES / file).read_text("utf-8"))  # our own files
    return made
