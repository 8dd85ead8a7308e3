"""A submission as people read it: code by lines, and by nbconvert the text and outputs of a notebook.

Nothing is executed, and no file that a notebook names is opened. Call it where a hostile file can do no harm.
It decides what is shown, and says what was cut. `outputs` decides what of an output is taken over.

Tests: tests/analysis/test_view.py, tests/parser/client/test_parsed_program.py
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import PurePath
from typing import Any

from jinja2 import DictLoader, pass_context
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import from_dict

from grader.analysis.decoding import text as decoded_text
from grader.analysis.highlighting import highlighted
from grader.analysis.notebook import cell_names, cell_text, is_notebook, notebook_cells
from grader.analysis.outputs import Budget, plain_outputs
from grader.domain.errors import SubmissionError
from grader.domain.submission_view import CellKind, View, ViewCell, plain_lines

MOST_CELLS = 1000
MOST_CODE = 2_000_000  # characters in all
MOST_TEXT = 400_000  # characters of Markdown in all
# between cells stands what no notebook can hold: it is drawn for each view
_TEMPLATE = """\
{%- extends 'basic/index.html.j2' -%}
{%- block any_cell -%}{{ super() }}{{ resources.separator }}{%- endblock any_cell -%}
"""


def viewed(name: str, data: bytes, modules: Mapping[str, bytes] | None = None) -> View:
    """What there is to see of a script or a notebook, and of the modules that it imports.

    Args:
        name: The file's name, without folders.
        data: Its content.
        modules: Name, with the folders before it -> content.

    Raises:
        SubmissionError: It cannot be read, with the reason.
    """
    decoded, _ = decoded_text(name, data, lambda text: True)
    if PurePath(name).suffix.lower() == ".ipynb" or is_notebook(decoded):
        whole = _notebook(name, decoded)
    elif len(decoded) > MOST_CODE:
        raise SubmissionError(f"{name}: is too long to be shown.")
    else:
        whole = View(name, (ViewCell(name, CellKind.CODE, highlighted(decoded)),))
    return _with_modules(whole, modules or {})


def _with_modules(whole: View, modules: Mapping[str, bytes]) -> View:
    code, cells, cuts = MOST_CODE, list(whole.cells), list(whole.cuts)
    for name, data in modules.items():
        text, _ = decoded_text(name, data, lambda text: True)
        code -= len(text)
        if code < 0:
            cuts.append(f"{name} is not shown: there is too much code.")
            break
        cells.append(ViewCell(name, CellKind.CODE, highlighted(text)))
    return replace(whole, cells=tuple(cells), cuts=tuple(cuts))


def _notebook(name: str, text: str) -> View:
    _, cells = notebook_cells(name, text)
    budget, code, prose = Budget(), MOST_CODE, MOST_TEXT
    if len(cells) > MOST_CELLS:
        budget.cut(f"It has {len(cells)} cells; the first {MOST_CELLS} are shown.")
    found: list[ViewCell] = []
    between: dict[int, dict[str, Any]] = {}  # place in `found` -> what nbconvert sets
    for file, cell in zip(cell_names(cells), cells[:MOST_CELLS], strict=False):
        if not isinstance(cell, dict):
            continue
        source = cell_text(cell)
        if cell.get("cell_type") in ("markdown", "heading", "html"):
            if len(source) > prose:
                budget.cut(f"The text of {file} is not shown: the notebook has too much.")
                continue
            prose -= len(source)
            between[len(found)] = {"cell_type": "markdown", "metadata": {}, "source": _heading(cell) + source}
            found.append(ViewCell(file, CellKind.TEXT))
            continue
        if len(source) > code:
            budget.cut(f"{file} is not shown: the notebook has too much code.")
            continue
        code -= len(source)
        is_code = cell.get("cell_type") == "code"
        lines = (highlighted if is_code else plain_lines)(source)
        if outputs := plain_outputs(cell, file, budget) if is_code else []:
            between[len(found)] = {"cell_type": "code", "metadata": {}, "source": "", "outputs": outputs}
        found.append(ViewCell(file, CellKind.CODE if is_code else CellKind.RAW, lines))
    for index, html in zip(between, _rendered(list(between.values())), strict=True):
        cell = found[index]
        found[index] = ViewCell(cell.file, cell.kind, cell.lines, html)
    return View(name, tuple(found), tuple(budget.cuts))


def _heading(cell: dict[str, Any]) -> str:
    """The marks of a heading, which was a kind of cell before format 4."""
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
        """A picture in a text; attachments, for want of which nbconvert gives up, are not taken over."""
        return super().image(text, "" if url.startswith("attachment:") else url, title)


class _CellExporter(HTMLExporter):  # type: ignore[misc]
    """nbconvert's HTML as its template sets it, without the steps around it that concern whole pages."""

    def _init_preprocessors(self) -> None:
        """None: they would execute, read files, or make styles."""
        self._preprocessors: list[Any] = []

    @pass_context
    def markdown2html(self, context: Any, source: str) -> Any:
        """A text's HTML, as nbconvert sets it."""
        return MarkdownWithMath(renderer=_Renderer(escape=False, exclude_anchor_links=True)).render(source)

    def from_notebook_node(self, nb: Any, resources: Any = None, **more: Any) -> Any:
        """The HTML of the cells; it is not parsed again, so that no cell reaches into the next."""
        self.register_filter("highlight_code", Highlight2HTML(parent=self))
        # HTMLExporter would parse the whole page, to describe its pictures
        return TemplateExporter.from_notebook_node(self, nb, self._init_resources(resources), **more)


@cache
def _exporter() -> _CellExporter:
    """The exporter of text and outputs, without code, prompts and whatever is loaded from elsewhere."""
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
