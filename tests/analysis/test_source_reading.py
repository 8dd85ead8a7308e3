"""Files of all kinds become plain Python with the lines of the original, or one clear sentence."""

import json

import nbformat
import pytest

from grader.analysis.notebook import cell_names
from grader.analysis.notebook_commands import plain
from grader.domain.errors import SubmissionError

GOOD = "def evaluate(m, d, h):\n    return 'é'\n"


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (b"", "homework.py", ["homework.py", "empty", "before you hand it in"]),
        (b" \n\t\n", "homework.py", ["empty"]),
        (b"", "homework.ipynb", ["homework.ipynb", "empty"]),
        (b"x = 1\ndef f(:\n", "homework.py", ["homework.py:2", "def f(:", "not correct Python"]),
        (b"print 'hello'\n", "homework.py", ["homework.py:1", "Python 2", "parentheses"]),
        (b"if True:\nx = 1\n", "homework.py", ["homework.py:2", "indented block"]),
        (b"return 3\n", "homework.py", ["homework.py:1", "'return' outside function"]),
        (b"a\0b", "homework.py", ["NUL bytes", "UTF-8"]),
        (b"\xff\xfea", "homework.py", ["UTF-16"]),
        (b"x = '\x81\xff' +", "homework.py", ["not saved as UTF-8"]),
        (b"# coding: nonsense\nx = '\xff' +", "homework.py", ["UTF-8"]),
        (b"{broken", "homework.ipynb", ["homework.ipynb", "damaged", "Jupyter"]),
        (b"[" * 100_000, "homework.ipynb", ["damaged"]),
        (b"[]", "homework.ipynb", ["not a notebook"]),
        (b'{"cells": 3}', "homework.ipynb", ["not a notebook"]),
        (b'{"cells": []}', "homework.ipynb", ["no cell with code"]),
        (b'{"cells": [{"cell_type": "markdown", "source": "x"}, 3, null]}', "a.ipynb", ["no cell with code"]),
        (b"(" * 90 + b")" * 90 + b"+" * 100_000 + b"1", "homework.py", ["nested too deeply"]),
        (b"x = " + b"-" * 50_000 + b"1", "homework.py", ["nested too deeply"]),
        (b"x = " + b"a." * 50_000 + b"a", "homework.py", ["nested too deeply"]),
        (b"x = " + b"1 + " * 50_000 + b"1", "homework.py", ["nested too deeply"]),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_sentence(analyzed, data, name, words):
    with pytest.raises(SubmissionError) as raised:
        analyzed(data, name)
    message = str(raised.value)
    assert all(word in message for word in words), message
    assert message.startswith(name) and "Traceback" not in message and "\n" not in message


@pytest.mark.parametrize(
    ("data", "noted"),
    [
        (GOOD.encode(), ""),
        (GOOD.encode("utf-8-sig"), ""),
        (("# -*- coding: latin-1 -*-\n" + GOOD).encode("latin-1"), ""),
        (GOOD.encode("utf-16"), "UTF-16"),
        (GOOD.encode("cp1252"), "cp1252"),
        (GOOD.replace("\n", "\r\n").encode(), ""),
        (GOOD.replace("\n", "\r").encode(), ""),
    ],
)
def test_text_is_read_in_the_encoding_that_it_has(analyzed, loaded, data, noted):
    made = analyzed(data)
    assert loaded(made)["evaluate"](0, 0, 0) == "é"
    assert made.defined["evaluate"].line in (1, 2)
    assert (noted in " ".join(map(str, made.notes))) if noted else not made.notes


def test_a_notebook_keeps_cells_and_lines(analyzed, notebook, loaded):
    made = analyzed(
        notebook(
            "## The title",
            "%matplotlib inline\n!pip install einops \\\n   timm\nimport math",
            "%%time\n\nclass ViT:\n    pass",
            "%%bash\nls\nclass Attention: pass",
            "files = !ls\nif True:\n    !unzip x.zip\nmath?\n?math\n%time A = 2\n"
            "def evaluate(m, d, h):\n    return A",
        ),
        "homework.ipynb",
    )
    assert {name: str(place) for name, place in made.defined.items()} == {
        "ViT": "In [2], line 3 (cell 3)",
        "evaluate": "In [4], line 7 (cell 5)",
    }
    assert loaded(made)["evaluate"](0, 0, 0) == 2
    left_out = {str(omission.place): omission.reason for omission in made.omissions}
    assert "shell" in left_out["In [1], line 2 (cell 2)"] and "%%bash" in left_out["In [3], line 1 (cell 4)"]
    assert "shell" in left_out["In [4], line 1 (cell 5)"] and "help" in left_out["In [4], line 4 (cell 5)"]
    assert len([note for note in made.notes if "magics" in note.text]) == 1
    assert made.source["In [3], cell 4"].startswith("%%bash\nls") and len(made.source) == 4


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        ([None, None, None], ["In [1], cell 2", "cell 3", "In [ ], cell 4", "In [2], cell 5"]),
        ([12, None, 57], ["In [12], cell 2", "cell 3", "In [ ], cell 4", "In [57], cell 5"]),
        ([3, None, 3], ["In [3], cell 2", "cell 3", "In [ ], cell 4", "In [3], cell 5"]),
        ([10**10, True, "7"], ["In [1], cell 2", "cell 3", "In [ ], cell 4", "In [2], cell 5"]),
    ],
)
def test_cells_are_called_as_jupyter_shows_them(runs: list[object], names: list[str]) -> None:
    """By the count that is kept; where none is, by that of a run from the top, without empty cells."""
    code = [
        {"cell_type": "code", "source": text, "execution_count": run}
        for text, run in zip(["x = 1", "", "y = 2"], runs, strict=True)
    ]
    text = {"cell_type": "markdown", "source": "x"}
    assert cell_names([text, code[0], text, *code[1:]]) == ["cell 1", *names]
    assert cell_names([{"cell_type": "code", "input": "x", "prompt_number": 4}]) == ["In [4], cell 1"]


def test_lines_that_only_look_like_magics_are_left_alone():
    text = 'x = """\n%matplotlib\n!ls\n"""\ny = (7\n  % 4)\nz = 7 \\\n  % 4\n# what?\n!ls\n'
    found = plain(text)
    assert [line.line for line in found.set_aside] == [10]
    assert found.code.split("\n")[:9] == text.split("\n")[:9]


def test_a_script_saved_from_colab_may_hold_shell_lines(analyzed, loaded):
    made = analyzed("!unzip dataset.zip\nget_ipython().system('ls')\ndef evaluate(m, d, h):\n    return 1\n")
    assert loaded(made)["evaluate"](0, 0, 0) == 1 and made.defined["evaluate"].line == 3
    assert ["shell" in o.reason or "program" in o.reason for o in made.omissions] == [True, True]
    assert not any(omission.broken for omission in made.omissions)


def test_a_cell_that_is_not_python_is_left_out_alone(analyzed, notebook):
    made = analyzed(notebook("x = (1", "def evaluate(m, d, h): return 1", "await f()"), "homework.ipynb")
    assert "evaluate" in made.defined
    assert [str(omission.place) for omission in made.omissions] == [
        "In [1], line 1 (cell 1)",
        "In [3], line 1 (cell 3)",
    ]
    assert all(omission.broken for omission in made.omissions)
    assert any("2 of 3 cells" in note.text and "In [1], line 1 (cell 1)" in note.text for note in made.notes)


def test_a_notebook_without_any_correct_cell_is_refused(analyzed, notebook):
    with pytest.raises(SubmissionError, match=r"homework\.ipynb, In \[1\], line 1 \(cell 2\): .*`x = \(1`"):
        analyzed(notebook("## Title", "x = (1", "%matplotlib inline"), "homework.ipynb")


def test_an_old_notebook_is_read_with_a_note(analyzed):
    v3 = nbformat.v3
    cells = [v3.new_text_cell("markdown", "x"), v3.new_code_cell("def evaluate(m, d, h): return 1")]
    old = v3.new_notebook(worksheets=[v3.new_worksheet(cells=cells)])
    made = analyzed(v3.writes_json(old).encode(), "homework.ipynb")
    assert str(made.defined["evaluate"]) == "In [1], line 1 (cell 2)"
    assert "old notebook format 3" in made.notes[0].text


def test_a_notebook_under_another_name_is_read_as_one(analyzed, notebook):
    made = analyzed(notebook("def evaluate(m, d, h): return 1"), "homework.py")
    assert "evaluate" in made.defined and "notebook under another name" in made.notes[0].text


def test_text_that_cannot_be_encoded_does_not_stop_a_notebook(analyzed):
    cell = {"cell_type": "code", "source": ["x = '\ud800'\n", "def evaluate(m, d, h): return 1"]}
    made = analyzed(json.dumps({"cells": [cell], "nbformat": 4}).encode(), "homework.ipynb")
    assert "evaluate" in made.defined
    "".join(made.source.values()).encode()


def test_folders_before_the_name_are_dropped(analyzed):
    assert (
        str(analyzed("def evaluate(m, d, h): return 1", "a/b\\homework.py").defined["evaluate"])
        == "homework.py:1"
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Resize(28, 28)", "Resize((28, 28))"),
        ("T.Resize(SIZE, SIZE)", "T.Resize((SIZE, SIZE))"),
        ("Resize(28, 2)", "Resize(28, 2)"),
        ("Resize(28, InterpolationMode.BICUBIC)", "Resize(28, InterpolationMode.BICUBIC)"),
        ("Resize((28, 28))", "Resize((28, 28))"),
        ("Resize(28, antialias=True)", "Resize(28, antialias=True)"),
    ],
)
def test_the_slip_of_the_handout_is_repaired(analyzed, written, read):
    made = analyzed(f"é = 1\ndef evaluate(m, d, h): return 'é', {written}, 1\n")
    assert f"return 'é', {read}, 1" in made.statements[-1].source
    assert bool(made.notes) is (written != read)
    assert written in made.source["homework.py"]
