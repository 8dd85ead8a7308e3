"""The tokens of code: what a student may choose is not in them, what the code does is."""

import ast

import pytest

from grader.similarity.normalized_code import units

BASE = """
import torch.nn as nn
import torch.nn.functional as F
class Layer(nn.Module):
    def __init__(self, dim, rate=0.1):
        super().__init__()
        self.inner = nn.Linear(dim, 2 * dim)
    def forward(self, x):
        x = x + F.softmax(self.inner(x), dim=-1)
        return x.transpose(1, 2)
"""


def forms(text):
    """The form of every unit."""
    return [unit.form for unit in units([("a.py", ast.parse(text))])]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x", "tokens"),
        ("self.inner", "self.the_layer"),
        ("self", "this"),
        ("import torch.nn as nn\n", "from torch import nn\n"),
        ("F.softmax", "nn.functional.softmax"),
        ("import torch.nn.functional as F", "import torch.nn.functional as func"),
        (
            "x = x + F.softmax(self.inner(x), dim=-1)",
            "x += F.softmax(\n  (self.inner(x)),  # note\n  dim=-1,)",
        ),
        ("x + F.softmax(self.inner(x), dim=-1)", "F.softmax(self.inner(x), dim=-1) + x"),
        ("rate=0.1", "rate: float = 0.25"),
        ("def forward(self, x):", 'def forward(self, x: "T") -> "T":\n        """Says."""'),
        ("2 * dim", "dim * 2"),
    ],
)
def test_what_a_student_may_choose_is_left_out(old, new):
    """Each of these changes leaves the tokens as they are."""
    changed = BASE.replace(old, new)
    if old.endswith(" as F"):
        changed = changed.replace("F.", "func.")
    assert changed != BASE
    if old == "x":
        changed = changed.replace("softmatokens", "softmax")
    assert forms(changed) == forms(BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("F.softmax", "F.log_softmax"),
        ("dim=-1", "dim=1"),
        (".transpose(1, 2)", ".reshape(1, 2)"),
        ("x = x + F", "x = x * F"),
        ("nn.Linear(dim, 2 * dim)", "nn.Linear(dim, dim)"),
    ],
)
def test_what_the_code_does_stays(old, new):
    """Each of these changes is seen."""
    assert forms(BASE.replace(old, new)) != forms(BASE)


def test_every_token_knows_its_line():
    """Also within a statement of several lines."""
    (unit,) = units([("cell 3", ast.parse("value = call(\n    1,\n    other,\n)"))])
    assert unit.file == "cell 3"
    assert dict.fromkeys(line for _, line in unit.tokens) == {1: None, 2: None, 3: None}


def test_functions_are_blocks_of_their_own():
    """The top level is one block, whatever stands between its statements."""
    found = units([("a", ast.parse("x = 1\ndef f():\n    return 2\n")), ("b", ast.parse("y = 2"))])
    assert [unit.block for unit in found] == [0, 1, 1, 0]
