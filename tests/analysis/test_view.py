"""A handed-in file as a person reads it: lines as they are counted, text and pictures alone between them."""

import base64
import io
import json

import pytest
from PIL import Image

from grader.analysis.view import MOST_PRINTED, viewed
from grader.domain.errors import SubmissionError
from grader.domain.submission import CellKind, text_of

CODE = 'import torch\n\n\ndef f(x):\n    """Two\n    lines."""\n    return 1.5  # why\n'


def notebook(*cells, **more) -> bytes:
    return json.dumps(
        {"cells": list(cells), "nbformat": 4, "nbformat_minor": 5, "metadata": {}} | more
    ).encode()


def code_cell(*outputs, source=CODE) -> dict:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {}}


def shown(**data) -> dict:
    return {"output_type": "display_data", "metadata": {}, "data": data}


def png(width=40, height=30, mode="RGBA") -> str:
    made = io.BytesIO()
    Image.new(mode, (width, height)).save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


def only(data: bytes):
    (cell,) = viewed("a.ipynb", data).cells
    return cell


def test_lines_are_those_that_findings_count() -> None:
    (cell,) = viewed("homework.py", CODE.encode()).cells
    assert (cell.file, cell.kind) == ("homework.py", CellKind.CODE)
    assert text_of(cell.lines) == CODE and cell.lines[3][0] == ("keyword", "def")
    assert ("comment", "# why") in cell.lines[6] and ("string", '    lines."""') in cell.lines[5]
    for odd in ("\n\n  x = 1", "%matplotlib inline\n!ls", "x = '", "\ufeffx", "\tx\x0cy", "print 'a'\r"):
        assert text_of(only(notebook(code_cell(source=odd))).lines) == odd.replace("\r", "\n")


def test_cells_are_numbered_among_all_and_old_formats_are_read() -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Lab"},
        code_cell(),
        {"cell_type": "raw", "source": "a\nb"},
    ]
    found = viewed("a.ipynb", notebook(*cells)).cells
    assert [(cell.file, cell.kind.value) for cell in found] == [
        ("cell 1", "text"),
        ("In [1], cell 2", "code"),
        ("cell 3", "raw"),
    ]
    assert "<h1>Lab</h1>" in found[0].html and not found[1].html and len(found[2].lines) == 2
    old = {
        "nbformat": 3,
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 2, "source": "Old"},
                    {
                        "cell_type": "code",
                        "input": ["x = 1\n", "y"],
                        "outputs": [
                            {"output_type": "pyout", "text": ["one"]},
                            {"output_type": "display_data", "png": png()},
                            {"output_type": "pyerr", "ename": "NameError", "evalue": "y", "traceback": []},
                        ],
                    },
                ]
            }
        ],
    }
    heading, code = viewed("a.ipynb", json.dumps(old).encode()).cells
    assert "<h2>Old</h2>" in heading.html and text_of(code.lines) == "x = 1\ny"
    assert "one" in code.html and "data:image/jpeg" in code.html and "NameError: y" in code.html


def test_outputs_are_text_and_pictures_made_anew() -> None:
    data = {"image/png": png(), "text/plain": "<Figure>"}
    cell = only(notebook(code_cell(shown(**data))))
    encoded = cell.html.split("base64,")[1].split('"')[0]
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
        assert (picture.format, picture.size, picture.getpixel((0, 0))) == ("JPEG", (40, 30), (255, 255, 255))
    assert "Figure" not in cell.html
    bar = {"output_type": "stream", "name": "stdout", "text": ["10%\r", "99%\r\n\x1b[31mred\x1b[0m"]}
    printed = only(notebook(code_cell(bar))).html
    assert "99%" in printed and "10%" not in printed and 'class="ansi-red-fg"' in printed


@pytest.mark.parametrize(
    "data",
    [
        {"text/html": "<b>x</b>"},
        {"image/svg+xml": "<svg onload=alert(1)>"},
        {"application/javascript": "alert(1)"},
        {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}},
    ],
)
def test_an_output_of_another_kind_is_named_and_not_taken_over(data: dict) -> None:
    (kind,) = data
    html = only(notebook(code_cell(shown(**data)))).html
    assert f"(not shown: an output of the kind {kind})" in html and "alert" not in html and "<svg" not in html


@pytest.mark.parametrize(
    "held",
    ["", "AAAA", "!!", base64.b64encode(b"<svg onload=alert(1)>").decode(), png()[:60], png(9000, 9000, "1")],
)
def test_what_is_no_picture_of_a_usable_size_is_not_shown(held: str) -> None:
    html = only(notebook(code_cell(shown(**{"image/png": held})))).html
    assert "<img" not in html


def test_what_is_too_much_is_cut_with_a_sentence() -> None:
    flood = {"output_type": "stream", "text": "a" * 50_000 + "the end"}
    view = viewed("a.ipynb", notebook(*[code_cell(flood, source="x")] * 60))
    assert "In [1], cell 1 printed more than is shown." in view.cuts
    assert len(view.cells[0].html) < MOST_PRINTED + 1_000 and "the end" in view.cells[0].html
    assert sum(len(cell.html) for cell in view.cells) < 700_000
    pictures = viewed("a.ipynb", notebook(code_cell(*[shown(**{"image/png": png()})] * 50)))
    assert pictures.cells[0].html.count("<img") == 40
    assert pictures.cuts == ("Further pictures, from In [1], cell 1 on, are not shown.",)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ({}, ""),
        ({"cell_type": "code"}, ""),
        ({"cell_type": "code", "source": 3, "outputs": "x"}, ""),
        ({"cell_type": "code", "source": ["a", 4, "b"], "outputs": [1, {}, {"output_type": []}]}, "ab"),
        ({"cell_type": "code", "source": "x", "outputs": [{"data": {"image/png": {"a": 1}}}]}, "x"),
        (
            {"cell_type": "code", "source": "\ud800", "outputs": [{"output_type": "error", "traceback": 5}]},
            "?",
        ),
    ],
)
def test_a_notebook_that_is_not_valid_is_shown_as_far_as_it_goes(cell: dict, text: str) -> None:
    found = viewed("a.ipynb", notebook(cell, code_cell(source="after"), 7)).cells
    assert [text_of(one.lines) for one in found] == [text, "after"]


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"[" * 100_000, b"{}", b"\x00"])
def test_what_is_no_notebook_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(SubmissionError, match=r"a\.ipynb: "):
        viewed("a.ipynb", data)


@pytest.mark.parametrize(
    "hostile", ["<!--", "<script>", "<textarea>", "<table><tr>", '<img alt="', "```\n", "</div>"]
)
def test_no_cell_reaches_into_the_next(hostile: str) -> None:
    cells = [{"cell_type": "markdown", "source": hostile}, {"cell_type": "markdown", "source": "untouched"}]
    first, second = viewed("a.ipynb", notebook(*cells)).cells
    assert "untouched" not in first.html and "<p>untouched</p>" in second.html


def test_the_same_file_gives_the_same_view() -> None:
    data = notebook({"cell_type": "markdown", "source": "a"}, code_cell(shown(**{"image/png": png()})))
    assert viewed("a.ipynb", data) == viewed("a.ipynb", data)
