"""Whoever checks in the notebook hands in what anybody else does: checks are taken out without a word."""

import json

import pytest

from grader.analysis.notebook import OWN_CHECK

PART = "class Attention:\n    size = 4\n"


@pytest.mark.parametrize(
    "cells",
    [
        ("import grader", PART, 'grader.check("Attention")'),
        ("%load_ext grader", "%%check Attention\n" + PART),
        ("%reload_ext grader  # anew", "%%check\n" + PART),
        (
            "import grader",
            PART,
            "r = grader.check()\nr",
            "good = [f.check for f in r.findings]",
            "r.passed, good",
        ),
        ("import grader as g\n" + PART, "g.check();"),
        ("from grader import check", PART, 'result = check("Attention")', "print(result.passed)"),
        ("import grader", PART, 'assert grader.check(\n    "Attention",\n).passed'),
        ("import grader", PART, 'for part in ("Attention", "ViT"):\n    grader.check(part)'),
        ("try:\n    import grader\nexcept ImportError:\n    pass", PART),
        ("import grader", PART, "if True:\n    grader.check()", "grader.check().findings[0]"),
    ],
)
def test_own_checks_leave_no_trace(analyzed, notebook, cells):
    found = analyzed(notebook(*cells), "homework.ipynb")
    assert not found.forbidden and not found.omissions and not found.notes and not found.unresolved
    assert [statement.binds for statement in found.statements] == [("Attention",)]


def test_lines_stay_where_they_are(analyzed, notebook):
    cell = f"%%check Attention\nimport os, grader\ngrader.check(\n    'ViT'\n); x = 1\n{PART}"
    found = analyzed(notebook(cell), "homework.ipynb")
    assert str(found.defined["Attention"]) == "In [1], line 6 (cell 1)"
    assert found.source["In [1], cell 1"].startswith("%%check Attention\nimport os, grader\n")


def test_a_script_may_check_too(analyzed):
    found = analyzed(f"import grader\n{PART}grader.check('Attention')\n")
    assert not found.forbidden and not found.omissions


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import grader\nx = grader.judge", "grader"),
        ("import grader.judge\n", "grader.judge"),
        ("from grader import check, judge\ncheck()", "grader.check"),
        ("import grader\nchosen = grader\ngrader.check()", "grader"),
        ("import grader\ndef f():\n    return grader.check('ViT').passed", "grader"),
        ("import grader\nresult = grader.check()\nif result.passed:\n    x = 1", "grader.check"),
        ("import grader\nresult = grader.check(grader.judge.student)", "grader.judge.student"),
        ("import grader\ntotal = f(grader.check())", "grader.check"),
    ],
)
def test_whatever_else_uses_the_package_is_seen(analyzed, code, name):
    found = analyzed(f"{code}\n{PART}")
    assert name in {use.name for use in found.forbidden}


def test_what_a_check_guards_is_kept(analyzed):
    found = analyzed(
        f"import grader\nif grader.check('ViT').passed:\n    {PART.replace(chr(10), chr(10) + '    ')}\n"
    )
    assert "Attention" in found.defined


def test_another_check_is_the_students(analyzed):
    found = analyzed(f"def check(part):\n    return part\n\n{PART}\ncheck('Attention')\n")
    assert [left.first_line for left in found.omissions] == ["check('Attention')"]


def test_what_a_check_showed_is_no_claim(analyzed, notebook):
    made = json.loads(notebook(PART, "grader.check()"))
    data = {"text/plain": "Test accuracy: 91.0 %\nEpoch 12/30"}
    shown = {"output_type": "display_data", "data": data, "metadata": {}}
    made["cells"][1]["outputs"] = [shown]
    claimed = analyzed(json.dumps(made).encode(), "homework.ipynb")
    assert claimed.claim is not None and claimed.shown_epochs == 12
    shown["metadata"] = {OWN_CHECK: True}
    own = analyzed(json.dumps(made).encode(), "homework.ipynb")
    assert own.claim is None and own.shown_epochs is None
