"""A file is rendered in the parser that parses it: whatever that comes to, the program is what it is."""

import base64
import io
import json
import time
from collections.abc import Iterator

import pytest
from PIL import Image

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError
from grader.domain.submission import View
from grader.parser.client.parsed_files import SECONDS, parsed_program, view_in
from grader.parser.messages import MODULE, VIEWS
from grader.sandbox.host_client import Host
from tests.warm_hosts import WarmHosts


@pytest.fixture(scope="module")
def parsers(warm_hosts: WarmHosts) -> Iterator[Host]:
    """The parsers' host, ready to render."""
    with warm_hosts.shared(), Host.start(MODULE, [VIEWS], wrapped=True) as host:
        yield host


def notebook(*cells: dict[str, object]) -> bytes:
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}).encode()


def code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": outputs}


def test_a_notebook_is_rendered_behind_the_lockdown(parsers: Host, assignment: Assignment) -> None:
    """What nbconvert, pygments and Pillow need is loaded before a parser can see no file."""
    made = io.BytesIO()
    Image.new("RGB", (30, 20)).save(made, "PNG")
    picture = {"image/png": base64.b64encode(made.getvalue()).decode()}
    text = {"cell_type": "markdown", "source": "# A\n\n| a |\n|---|\n| `b` |\n\n$x$\n\n```python\nx = 1\n```"}
    cell = code("x = 1", {"output_type": "display_data", "data": picture})
    shown: list[View] = []
    program = parsed_program(parsers, "a.ipynb", notebook(text, cell), assignment, show=shown.append)
    (view,) = shown
    assert program.source == {"In [1], cell 2": "x = 1"}
    assert "<h1>A</h1>" in view.cells[0].html and "<table>" in view.cells[0].html
    assert "data:image/jpeg;base64," in view.cells[1].html
    assert parsed_program(parsers, "a.ipynb", notebook(text, cell), assignment) == program


def test_what_cannot_be_graded_is_shown_all_the_same(parsers: Host, assignment: Assignment) -> None:
    shown: list[View] = []
    with pytest.raises(SubmissionError, match="is not correct Python"):
        parsed_program(parsers, "a.py", b"def f(:\n", assignment, show=shown.append)
    with pytest.raises(SubmissionError, match="no cell with code"):
        parsed_program(
            parsers,
            "a.ipynb",
            notebook({"cell_type": "markdown", "source": "only text"}),
            assignment,
            show=shown.append,
        )
    script, text = shown
    assert len(script.cells[0].lines) == 2 and "only text" in text.cells[0].html
    with pytest.raises(SubmissionError, match="is damaged"):
        parsed_program(parsers, "a.ipynb", b'{"cells', assignment, show=shown.append)
    assert len(shown) == 2


@pytest.mark.slow
def test_a_rendering_that_ends_badly_costs_the_view_alone(parsers: Host, assignment: Assignment) -> None:
    """Markdown that takes nbconvert minutes: it is ended long before the parser's own limit."""
    slow = {"cell_type": "markdown", "source": "![" * 100_000}
    shown: list[View] = []
    started = time.monotonic()
    program = parsed_program(parsers, "a.ipynb", notebook(slow, code("x = 1")), assignment, show=shown.append)
    assert program.source == {"In [1], cell 2": "x = 1"} and shown == []
    assert time.monotonic() - started < 0.8 * SECONDS


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"view": None},
        {"view": {"file": 1}},
        {"view": {"file": "a", "cells": [{"file": "a", "kind": "script"}]}},
        {"view": {"file": "a", "cells": [{"file": "a", "kind": "text", "html": "a" * 12_000_001}]}},
        {"view": {"file": "a", "cells": [{"file": "a", "kind": "code", "lines": [[["keyword"]]]}]}},
    ],
)
def test_an_answer_that_makes_no_sense_is_no_view(told: dict[str, object]) -> None:
    assert view_in(told) is None


def test_modules_are_read_and_shown_beside_the_file(parsers: Host, assignment: Assignment) -> None:
    """A parser that sees no file knows what is a library of this machine all the same."""
    shown: list[View] = []
    modules = {
        "parts/helpers.py": b"def doubled(x):\n    return 2 * x\n",
        "datasets.py": b"class ImageFolder:\n    pass\n",
    }
    program = parsed_program(
        parsers,
        "a.py",
        b"from parts.helpers import doubled\nfrom torchvision import datasets\n\n"
        b"class Attention:\n    size = doubled(3)\n",
        assignment,
        show=shown.append,
        modules=modules,
    )
    assert program.modules == ("parts/helpers.py",)
    assert [cell.file for cell in shown[0].cells] == ["a.py", "parts/helpers.py"]
    places = {str(statement.place) for statement in program.statements}
    assert {"parts/helpers.py:1", "a.py:4"} <= places
