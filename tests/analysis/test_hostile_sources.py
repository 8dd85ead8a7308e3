"""Whatever is handed in: a program or one sentence, in bounded time. Nothing is executed."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.analysis import program
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Component, ProgramRules
from grader.domain.assignment_rules import ForbiddenRule
from grader.domain.errors import SubmissionError

COMPONENTS = (Component("ViT", "class", "dim"), Component("train_epoch", "function", "model, optimizer"))
RULES = (ForbiddenRule("timm", "forbid", "model", "Not allowed."),)
FRAGMENTS = st.sampled_from(
    [
        *("import timm", "from torch import nn", "from timm import *", "from . import x", "import a.b as c"),
        *(
            "class ViT(nn.Module): pass",
            "class VIT: x: int = y",
            "def train_epoch(model, optimizer): return q",
        ),
        *("model = ViT(dim=8)", "model = ViT(**config).to(device)", "config = {'dim': 8}", "config['x'] = 1"),
        *(
            "optimizer = optim.Adam(model.parameters(), lr)",
            "for e in range(1, N + 1):",
            "    train_epoch(model, o)",
        ),
        *(
            "while True:",
            "    scheduler.step()",
            "if x:",
            "else:",
            "try:",
            "except E as e:",
            "with open(f) as g:",
        ),
        *(
            "    x = y = z",
            "x, *y = z",
            "x += 1",
            "del x",
            "def main(a, *b, c=1, **d):",
            "main()",
            "lambda: x",
        ),
        *(
            "    return ViT(dim=a)",
            "@x",
            "[a for b in c if (d := b)]",
            "match x:",
            "    case {'a': b, **c}: pass",
        ),
        *(
            "%matplotlib",
            "!ls \\",
            "x?",
            "'''",
            '"',
            "(",
            ")",
            "\\",
            "    ",
            "\t",
            "global x",
            "async def f(): pass",
        ),
        *("if __name__ == '__main__':", "    main()", "transform=transforms.Compose([Resize(28, 28)])"),
        *("a = DataLoader(d, batch_size=a, shuffle=True)", "d = ImageFolder('x', transform=t)", "t = t"),
        *("getattr(nn, 'a' * 9)", "f'{a}{b!r:>{c}}'", "x = x", "def f(): f()", "f(f)", "class A(A): pass"),
        *("nonlocal x", "return", "yield x", "print 1", "from __future__ import annotations", "type X = int"),
    ]
)


def outcome(name: str, data: bytes) -> Program | str:
    """The program, or the sentence; anything else is a failure."""
    try:
        return program(name, data, ProgramRules(COMPONENTS, RULES))
    except SubmissionError as error:
        sentence = str(error)
    assert sentence.startswith(name) and "\n" not in sentence
    return sentence


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.lists(FRAGMENTS, max_size=14).map("\n".join), st.booleans())
def test_any_mixture_of_lines(text, as_notebook):
    if as_notebook:
        cells = [{"cell_type": "code", "source": part} for part in text.split("\n\n")]
        outcome("homework.ipynb", json.dumps({"cells": cells}).encode())
    else:
        outcome("homework.py", text.encode())


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8"))))
def test_any_bytes(data):
    outcome("homework.py", data)
    outcome("homework.ipynb", data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cells", "worksheets", "cell_type", "source", "input", "nbformat"]), inner
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(JSON)
def test_any_json(content):
    outcome("homework.ipynb", json.dumps(content).encode())


def test_every_line_of_a_kept_statement_is_where_the_student_wrote_it():
    text = "import timm\n\n\ndef helper():\n    '''\n  odd\n    '''\n    return 1\nx = [\n    1,\n    ]\n"
    made = outcome("homework.py", text.encode())
    assert isinstance(made, Program)
    lines = text.split("\n")
    assert len(made.statements) == 3
    for statement in made.statements:
        count = statement.source.count("\n") + 1
        start = statement.place.line - 1
        assert lines[start : start + count] == statement.source.split("\n")


SHAPES = {
    "definitions": lambda i: (
        f"def f{i}(x):\n    y = x + {i}\n    return f{i - 1}(y) if y else np.zeros({i})\n\n"
    ),
    "constants": lambda i: f"NAME_{i} = NAME_{i - 1} + 1  # and a comment of some length\n",
    "calls": lambda i: f"data_{i} = DataLoader(set_{i}, batch_size=B, transform=t_{i})\nprint(data_{i})\n",
    "loops": lambda i: f"for e in range({i}):\n    train_epoch(model, optimizer)\n    x{i} = e\n",
    "models": lambda i: f"def make_{i}(d):\n    return ViT(dim=d)\nmodel_{i} = make_{i}({i})\n",
    "blocks": lambda i: f"if flag:\n    import m{i}\nelse:\n    os.system('x{i}')\n",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_file_takes_bounded_time(shape):
    head = (
        "import numpy as np\nclass ViT: pass\ndef train_epoch(model, optimizer): return f1, NAME_1, data_1\n"
    )
    parts, size = [head], 0
    while size < 50_000:
        parts.append(SHAPES[shape](len(parts)))
        size += len(parts[-1])
    begin = time.process_time()
    outcome("homework.py", "".join(parts).encode())
    assert time.process_time() - begin < 3  # seconds; usually 0.3 to 0.9


def test_more_code_than_can_be_analyzed_is_refused(monkeypatch):
    monkeypatch.setattr("grader.analysis.source.MOST_NODES", 1_000)
    assert isinstance(outcome("homework.py", b"x = [" + b"0, " * 900 + b"]"), Program)
    sentence = outcome("homework.py", b"x = [" + b"0, " * 1_000 + b"]")
    assert isinstance(sentence, str) and "more code than can be analyzed" in sentence


def notebook_of(*cells):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}).encode()


def cell_of(source, outputs=()):
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {},
        "outputs": list(outputs),
        "execution_count": 1,
    }


DEEP_JSON = (
    b'{"cells": [{"cell_type": "code", "source": "x = 1", "outputs": ' + b"[" * 200_000 + b"]" * 200_000
)
HOSTILE = {
    "deep outputs": ("a.ipynb", DEEP_JSON + b"}]}", "damaged"),
    "deep object": ("a.ipynb", b'{"cells":' * 100_000, "damaged"),
    "cells that are not cells": (
        "a.ipynb",
        b'{"cells": [1, null, [], {"cell_type": "code", "source": {}}]}',
        "no cell",
    ),
    "a number of many digits": ("a.ipynb", b'{"cells": ' + b"9" * 100_000 + b"}", "damaged"),
    "brackets": ("a.py", b"x = " + b"[" * 100_000 + b"]" * 100_000, "nested"),
    "signs": ("a.py", b"x = " + b"-" * 50_000 + b"1", ""),
    "a sum": ("a.py", b"x = " + b"+".join([b"1"] * 50_000), ""),
    "attributes": ("a.py", b"x = a" + b".b" * 50_000, ""),
    "calls": ("a.py", b"x = a" + b"()" * 50_000, ""),
    "blocks": ("a.py", b"".join(b" " * i + b"if x:\n" for i in range(200)) + b" " * 200 + b"y\n", ""),
    "functions": ("a.py", b"x = " + b"lambda: " * 5_000 + b"1", ""),
    "f-strings": ("a.py", b"x = " + b'f"{' * 200 + b"1" + b'}"' * 200, ""),
    "a line": ("a.py", b"x = '" + b"a" * 1_900_000 + b"'", ""),
    "a number": ("a.py", b"x = " + b"9" * 1_000_000, ""),
    "a power": ("a.py", b"x = 9 ** 9 ** 9 ** 9\nclass ViT: size = 10 ** 10 ** 10", ""),
    "a repetition": ("a.py", b"x = 'a' * 10 ** 12\nclass ViT: size = (0,) * 10 ** 12", ""),
    "zero bytes": ("a.py", b"x = 1\0", "NUL"),
    "a coding line": ("a.py", b"# coding: rot13\nk = 1\n\xff", ""),
    "a coding line that unpacks": ("a.py", b"# coding: bz2\nx\xff", ""),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_costs_little(kind):
    """A program or one sentence, within seconds."""
    name, data, words = HOSTILE[kind]
    begin = time.process_time()
    found = outcome(name, data)
    assert time.process_time() - begin < 5  # seconds; usually 0.1
    if words:
        assert isinstance(found, str) and words in found, found


def test_a_notebook_of_outputs_and_shell_lines_is_its_code():
    """Megabytes of pictures and what a shell would do: neither is looked at."""
    picture = {"output_type": "display_data", "data": {"image/png": "A" * 5_000_000}, "metadata": {}}
    script = {
        "output_type": "display_data",
        "data": {"text/html": "<script>alert(1)</script>"},
        "metadata": {},
    }
    cells = [
        cell_of("!rm -rf / --no-preserve-root\n%run evil.py\nclass ViT: pass", [picture]),
        cell_of("%%bash\nrm -rf ~", [script]),
        cell_of(["%%writefile torch.py\n", "evil = 1"]),
        cell_of("get_ipython().system('rm -rf /')\n"),
    ]
    found = outcome("homework.ipynb", notebook_of(*cells))
    assert isinstance(found, Program)
    executed = "\n".join(statement.source for statement in found.statements)
    assert "class ViT" in executed
    for evil in ("rm ", "evil", "ipython", "AAAA", "script"):
        assert evil not in executed
