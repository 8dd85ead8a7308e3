"""What a kernel was given becomes the notebook as it stands: each cell once, as it was executed last."""

import json

import pytest

from grader.analysis import program
from grader.analysis.notebook import Execution, executed_notebook
from grader.domain.analyzed_program import cell_number, place_of
from grader.domain.assignment import Component, ProgramRules

RULES = ProgramRules((Component("Attention", "class", "dim"),), ())


def cells(*executions: tuple[str, str] | str) -> list[tuple[int, str]]:
    """(number, text) of the notebook's cells; an execution is its text, or that and its cell's id."""
    given = [(one, "") if isinstance(one, str) else one for one in executions]
    made = executed_notebook(
        Execution(number, text, cell) for number, (text, cell) in enumerate(given, start=1)
    )
    return [(cell["execution_count"], cell["source"]) for cell in json.loads(made)["cells"]]


def test_a_cell_counts_by_its_last_execution_and_stands_where_it_was_first():
    assert cells(("x = 1", "a"), ("y = x", "b"), ("x = 2", "a"), ("", "c")) == [(3, "x = 2"), (2, "y = x")]


def test_imports_that_were_executed_again_still_come_first():
    first, model = "import torch\nfrom torch import nn", "class ViT(nn.Module):\n    pass"
    assert cells(first, model, first) == [(3, first), (2, model)]


def test_without_an_id_the_latest_definition_counts():
    old, new = "class Attention:\n    heads = 4", "class Attention:\n    heads = 8"
    assert cells(old, "x = 1", new) == [(2, "x = 1"), (3, new)]


def test_only_the_older_definition_goes_and_lines_stay():
    whole = "import math\n\n@decorated\nclass Attention:\n    heads = 4\n\nSIZE = 3"
    found = cells("def decorated(x):\n    return x", whole, "class Attention:\n    heads = 8")
    assert found[1] == (2, "import math\n\n\n\n\n\nSIZE = 3")


def test_an_older_definition_stays_where_its_own_cell_uses_it_at_once():
    cell = "def rate():\n    return 3\n\ndef doubled():\n    return 2 * rate()\n\nRATE = doubled()"
    assert cells(cell, "def rate():\n    return 4") == [(1, cell), (2, "def rate():\n    return 4")]


def test_what_a_cell_needs_comes_before_it():
    """A cell was inserted above, and the cell below was executed again."""
    found = cells(
        ("class ViT:\n    pass", "a"), ("class Base:\n    pass", "b"), ("class ViT(Base):\n    pass", "a")
    )
    assert [number for number, _ in found] == [2, 3]


def test_what_it_needs_through_others_comes_before_it_too():
    failed = ("model = ViT()", "c")
    found = cells(
        ("class ViT:\n    def __init__(self):\n        self.part = Attention()", "a"),
        failed,
        ("class Attention:\n    pass", "b"),
        failed,
    )
    assert [number for number, _ in found] == [1, 3, 4]


def test_cells_that_need_each_other_stay_in_their_order():
    found = cells("x = 0", ("a = x + b", "1"), ("b = a", "2"))
    assert [number for number, _ in found] == [1, 2, 3]


def test_a_loop_that_was_executed_twice_is_one():
    loop = "for epoch in range(3):\n    pass"
    assert cells(loop, loop) == [(2, loop)]
    assert cells((loop, "a"), (loop.replace("3", "5"), "a")) == [(2, loop.replace("3", "5"))]


@pytest.mark.parametrize(
    ("executions", "kept"),
    [
        (["class Attention(:\n    pass", "x = 1"], [1, 2]),  # nothing else defines it: it is told
        (["class Attention(:\n    pass", "class Attention:\n    pass"], [2]),
        (["print 'x'", "x = 1"], [2]),  # Jupyter has told of it
    ],
)
def test_what_is_no_python_matters_only_where_it_was_to_define_something(executions, kept):
    assert [number for number, _ in cells(*executions)] == kept


def test_magics_are_no_obstacle():
    found = cells(
        "%load_ext grader",
        "%%check ViT\nclass ViT:\n    pass",
        "!nvidia-smi",
        "%%check ViT\nclass ViT:\n    x = 1",
    )
    assert [number for number, _ in found] == [1, 3, 4]


def test_its_places_are_those_of_the_executions():
    made = executed_notebook([Execution(7, "import math"), Execution(12, "\nclass Attention:\n    pass")])
    found = program("notebook.ipynb", made, RULES, executed=True)
    place = found.defined["Attention"]
    assert str(place) == "In [12], line 2" and place_of(str(place)) == place
    assert cell_number(place.file) == 12, "it is a cell, wherever places are listed"


def test_a_file_that_is_handed_in_has_the_places_of_a_file(analyzed):
    """Whatever its cells say of themselves."""
    made = executed_notebook([Execution(10**8, "class ViT:\n    pass")])
    assert str(analyzed(made, "homework.ipynb").defined["ViT"]) == "In [100000000], line 1 (cell 1)"


def test_the_first_of_two_stages_stays_the_first_when_it_is_executed_again():
    first, second = "for epoch in range(3):\n    pass", "for epoch in range(5):\n    pass"
    assert [number for number, _ in cells((first, "a"), (second, "b"), (first, "a"))] == [3, 2]
