"""A submission as people read it: colored code, rendered text, and outputs made anew.

Nothing is executed, and no file that a notebook names is opened. Only the text and decoded pictures of
outputs are taken over: no HTML, SVG, JavaScript, widget, attachment or metadata. This module decides what
is shown, and says what was cut. Call it where a hostile file can do no harm. It decides nothing about the
code; `stated_values` reads claims in outputs.

Tests: tests/analysis/test_view.py, tests/parser/client/test_parsed_program.py
"""

import base64
import binascii
import io
import json
import re
import secrets
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePath
from typing import Any

from jinja2 import DictLoader, pass_context
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import from_dict
from PIL import Image
from pygments.lexers.python import PythonLexer
from pygments.token import Token

from grader.analysis.notebook import cell_names, cell_text, is_notebook, joined, notebook_cells
from grader.analysis.source import decoded_text
from grader.domain.errors import SubmissionError
from grader.domain.submission import CellKind, CodeLine, View, ViewCell, plain_lines, text_of

_LEXER = PythonLexer(stripnl=False, ensurenl=False)
# kinds that a reader should be able to tell apart; everything else has the color of text
_KINDS = {
    Token.Keyword: "keyword",
    Token.Operator.Word: "keyword",
    Token.Literal.String: "string",
    Token.Literal.Number: "digits",
    Token.Comment: "comment",
    Token.Name.Class: "defined",
    Token.Name.Function: "defined",
    Token.Name.Decorator: "defined",
}


def highlighted(code: str) -> tuple[CodeLine, ...]:
    """The lines of `code`, as `str.split` counts them, each with the kinds of its pieces.

    Args:
        code: Python, or nearly; `\\n` between lines.
    """
    lines: list[list[tuple[str, str]]] = [[]]
    for token, text in _LEXER.get_tokens(code):
        kind = _kind(token)
        for index, piece in enumerate(text.split("\n")):
            if index:
                lines.append([])
            if piece and lines[-1] and lines[-1][-1][0] == kind:
                lines[-1][-1] = (kind, lines[-1][-1][1] + piece)
            elif piece:
                lines[-1].append((kind, piece))
    code_lines = tuple(tuple(line) for line in lines)
    # if a lexer changed anything, findings would appear beside the wrong lines
    return code_lines if text_of(code_lines) == code else plain_lines(code)


def _kind(token: object) -> str:
    while token is not None and token not in _KINDS:
        token = getattr(token, "parent", None)
    return _KINDS.get(token, "") if token is not None else ""


# --- outputs ---------------------------------------------------------------------------------------------


MOST_PICTURES = 40
MOST_PIXELS = 16_000_000  # of one picture
MOST_PIXELS_IN_ALL = 40_000_000
WIDEST = 1400  # pixels, as shown
MOST_PRINTED = 20_000  # characters of one output
MOST_PRINTED_IN_ALL = 600_000
MOST_OUTPUTS = 200  # of one cell
_PICTURES = ("image/png", "image/jpeg", "png", "jpeg")  # the last two in formats before 4
_TEXTS = ("text/plain", "text", "text/markdown", "text/latex")
# the escape character begins a terminal's colors, which are shown as colors
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")


Output = dict[str, Any]
"""An output as in nbformat 4."""


@dataclass
class Budget:
    """What may still be shown of a notebook, and what was left out."""

    pictures: int = MOST_PICTURES
    pixels: int = MOST_PIXELS_IN_ALL
    printed: int = MOST_PRINTED_IN_ALL
    cuts: list[str] = field(default_factory=list)

    def cut(self, sentence: str) -> None:
        """Note what is not shown, once."""
        if sentence not in self.cuts:
            self.cuts.append(sentence)


def plain_outputs(cell: dict[str, Any], where: str, budget: Budget) -> list[Output]:
    """A cell's outputs as text and JPEG pictures.

    Args:
        cell: As in the notebook, in any format.
        where: The cell's name, for sentences.
        budget: What the earlier cells left; what this one needs is taken from it.
    """
    outputs = cell.get("outputs")
    listed = [entry for entry in outputs if isinstance(entry, dict)] if isinstance(outputs, list) else []
    if len(listed) > MOST_OUTPUTS:
        budget.cut(f"{where} has {len(listed)} outputs; the first {MOST_OUTPUTS} are shown.")
    return [plain for output in listed[:MOST_OUTPUTS] for plain in _plain_output(output, where, budget)]


def _plain_output(output: dict[str, Any], where: str, budget: Budget) -> Iterator[Output]:
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if "stderr" in (output.get("name"), output.get("stream")) else "stdout"
        yield _printed(_text(joined(output.get("text")), where, budget), name)
    elif kind in ("error", "pyerr"):
        trace = output.get("traceback")
        message = (
            "\n".join(line for line in trace if isinstance(line, str)) if isinstance(trace, list) else ""
        )
        message = message or f"{joined(output.get('ename'))}: {joined(output.get('evalue'))}"
        yield _printed(_text(joined(message), where, budget), "stderr")
    else:
        data = output.get("data")
        by_kind = data if isinstance(data, dict) else output
        picture = _picture_of(by_kind, where, budget)
        if picture is not None:
            yield picture
            return
        text = next((text for name in _TEXTS if (text := joined(by_kind.get(name)))), None)
        if text is None:
            kinds = sorted(str(name)[:60] for name in by_kind if "/" in str(name))[:3]
            text = f"(not shown: an output of the kind {', '.join(kinds) or 'unknown'})"
        yield _printed(_text(text, where, budget))


def _text(text: str, where: str, budget: Budget) -> str:
    """A printed text as a terminal leaves it, without its middle if it is long."""
    most = min(MOST_PRINTED, budget.printed)
    if len(text) > most:
        budget.cut(f"{where} printed more than is shown.")
        head = text[: most // 2]
        text = f"{head}\n… {len(text) - most} characters are not shown …\n{text[len(text) - most // 2 :]}"
    budget.printed -= min(len(text), budget.printed)
    # a carriage return begins the line again, as in progress bars
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", "\n".join(lines))


def _picture_of(by_kind: dict[str, Any], where: str, budget: Budget) -> Output | None:
    encoded = next((text for name in _PICTURES if (text := joined(by_kind.get(name)))), None)
    if encoded is None:
        return None
    if budget.pictures <= 0 or budget.pixels <= 0:
        budget.cut(f"Further pictures, from {where} on, are not shown.")
        return _printed("(a picture is not shown)")
    budget.pictures -= 1
    try:
        picture = _drawn_anew(base64.b64decode(encoded), budget)
    except MemoryError:
        raise
    except (binascii.Error, ValueError):
        picture = None
    if picture is None:
        return _printed("(a picture that cannot be shown)")
    encoded_jpeg = {"image/jpeg": base64.b64encode(picture).decode("ascii")}
    return {"output_type": "display_data", "data": encoded_jpeg, "metadata": {}}


def _printed(text: str, name: str = "stdout") -> Output:
    return {"output_type": "stream", "name": name, "text": text}


def _drawn_anew(data: bytes, budget: Budget) -> bytes | None:
    """The pixels of a PNG or JPEG as a JPEG of our own; None if it is neither, or too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
                pixels = image.width * image.height
                if pixels > min(MOST_PIXELS, budget.pixels):
                    return None
                budget.pixels -= pixels
                shown = _on_white(image)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Pillow fails in many ways on what is not a picture
        return None
    if shown.width > WIDEST:
        shown.thumbnail((WIDEST, MOST_PIXELS))
    jpeg = io.BytesIO()
    # made anew in the fastest of the formats: this takes most of the time of a view
    shown.save(jpeg, "JPEG", quality=90, subsampling=0)
    return jpeg.getvalue()


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode in ("RGB", "L"):
        return image.convert("RGB")
    layered = image.convert("RGBA")
    if layered.getchannel("A").getextrema() == (255, 255):
        return layered.convert("RGB")
    page = Image.new("RGBA", layered.size, "white")
    page.alpha_composite(layered)
    return page.convert("RGB")


# --- view ------------------------------------------------------------------------------------------------


MOST_CELLS = 1000
MOST_CODE = 2_000_000  # characters in all
MOST_TEXT = 400_000  # characters of Markdown in all
# cells are separated by a text that no notebook can contain: it is drawn at random for each view
_TEMPLATE = """\
{%- extends 'basic/index.html.j2' -%}
{%- block any_cell -%}{{ super() }}{{ resources.separator }}{%- endblock any_cell -%}
"""


def viewed(name: str, data: bytes, modules: Mapping[str, bytes] | None = None) -> View:
    """What is shown of a script or a notebook, and of the modules that it imports.

    Args:
        name: The file's name, without folders.
        data: Its content.
        modules: Name, with the folders before it -> content.

    Raises:
        SubmissionError: It cannot be read, with the reason.
    """
    decoded, _ = decoded_text(name, data, lambda text: True)
    if PurePath(name).suffix.lower() == ".ipynb" or is_notebook(decoded):
        view = _notebook(name, decoded)
    elif len(decoded) > MOST_CODE:
        raise SubmissionError(f"{name}: is too long to be shown.")
    else:
        view = View(name, (ViewCell(name, CellKind.CODE, highlighted(decoded)),))
    return _with_modules(view, modules or {})


def _with_modules(view: View, modules: Mapping[str, bytes]) -> View:
    code, cells, cuts = MOST_CODE, list(view.cells), list(view.cuts)
    for name, data in modules.items():
        text, _ = decoded_text(name, data, lambda text: True)
        code -= len(text)
        if code < 0:
            cuts.append(f"{name} is not shown: there is too much code.")
            break
        cells.append(ViewCell(name, CellKind.CODE, highlighted(text)))
    return replace(view, cells=tuple(cells), cuts=tuple(cuts))


def _notebook(name: str, text: str) -> View:
    _, cells = notebook_cells(name, text)
    budget, code, prose = Budget(), MOST_CODE, MOST_TEXT
    if len(cells) > MOST_CELLS:
        budget.cut(f"It has {len(cells)} cells; the first {MOST_CELLS} are shown.")
    shown: list[ViewCell] = []
    between: dict[int, dict[str, Any]] = {}  # position in `shown` -> what nbconvert renders
    for file, cell in zip(cell_names(cells), cells[:MOST_CELLS], strict=False):
        if not isinstance(cell, dict):
            continue
        source = cell_text(cell)
        if cell.get("cell_type") in ("markdown", "heading", "html"):
            if len(source) > prose:
                budget.cut(f"The text of {file} is not shown: the notebook has too much text.")
                continue
            prose -= len(source)
            between[len(shown)] = {"cell_type": "markdown", "metadata": {}, "source": _heading(cell) + source}
            shown.append(ViewCell(file, CellKind.TEXT))
            continue
        if len(source) > code:
            budget.cut(f"{file} is not shown: the notebook has too much code.")
            continue
        code -= len(source)
        is_code = cell.get("cell_type") == "code"
        lines = (highlighted if is_code else plain_lines)(source)
        if outputs := plain_outputs(cell, file, budget) if is_code else []:
            between[len(shown)] = {"cell_type": "code", "metadata": {}, "source": "", "outputs": outputs}
        shown.append(ViewCell(file, CellKind.CODE if is_code else CellKind.RAW, lines))
    for index, html in zip(between, _rendered(list(between.values())), strict=True):
        cell = shown[index]
        shown[index] = ViewCell(cell.file, cell.kind, cell.lines, html)
    return View(name, tuple(shown), tuple(budget.cuts))


def _heading(cell: dict[str, Any]) -> str:
    """The marks of a heading cell, a kind of cell that existed before format 4."""
    level = cell.get("level", 1)
    if cell.get("cell_type") != "heading" or type(level) is not int:
        return ""
    return "#" * max(1, min(level, 6)) + " "


def _rendered(cells: list[dict[str, Any]]) -> list[str]:
    """The HTML of each cell."""
    if not cells:
        return []
    separator = f"<!--{secrets.token_hex(16)}-->"
    notebook = from_dict({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells})  # type: ignore[no-untyped-call]
    html, _ = _exporter().from_notebook_node(notebook, {"separator": separator})
    return [piece.strip() for piece in html.split(separator)[: len(cells)]]


class _Renderer(IPythonRenderer):  # type: ignore[misc]
    def image(self, text: str, url: str, title: str | None = None) -> Any:
        """A picture in a text, without attachments: nbconvert fails if one is missing."""
        return super().image(text, "" if url.startswith("attachment:") else url, title)


class _CellExporter(HTMLExporter):  # type: ignore[misc]
    """nbconvert's HTML as its template renders it, without the steps that concern whole pages."""

    def _init_preprocessors(self) -> None:
        """Use no preprocessors: they would execute, read files, or make styles."""
        self._preprocessors: list[Any] = []

    @pass_context
    def markdown2html(self, context: Any, source: str) -> Any:
        """A text's HTML, as nbconvert renders it."""
        return MarkdownWithMath(renderer=_Renderer(escape=False, exclude_anchor_links=True)).render(source)

    def from_notebook_node(self, nb: Any, resources: Any = None, **options: Any) -> Any:
        """The HTML of the cells; it is not parsed again, so no cell can reach into the next."""
        self.register_filter("highlight_code", Highlight2HTML(parent=self))
        # HTMLExporter would parse the whole page, to describe its pictures
        return TemplateExporter.from_notebook_node(self, nb, self._init_resources(resources), **options)


@cache
def _exporter() -> _CellExporter:
    """The exporter of text and outputs, without code, prompts or anything loaded from elsewhere."""
    return _CellExporter(
        template_name="basic",
        template_file="cells.html.j2",
        extra_loaders=[DictLoader({"cells.html.j2": _TEMPLATE})],
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )


def warm() -> None:
    """Load what the first notebook would load."""
    cells = [
        {"cell_type": "markdown", "source": "# a\n`b` $c$\n\n| a |\n|---|\n| b |\n"},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"output_type": "stream", "text": "\x1b[31ma"}]},
    ]
    viewed("warm.ipynb", json.dumps({"cells": cells, "nbformat": 4}).encode())
