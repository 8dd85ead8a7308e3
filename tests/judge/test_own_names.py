"""Hints with the student's own names; where the file does not tell them, with the usual ones."""

from collections.abc import Callable

import pytest

from grader.domain.analyzed_program import Program
from grader.judge.source_places import with_own_names

PART = "\nclass ViT(nn.Module):\n    def forward(self, x):\n        return F.relu(x)\n"
HINT = "Use {F = torch.nn.functional}.cross_entropy."


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import torch.nn as nn\nimport torch.nn.functional as tnf", "tnf"),
        ("from torch import nn\nfrom torch.nn import functional", "functional"),
        ("from torch import nn", "nn.functional"),
        ("import torch\nnn = torch.nn", "torch.nn.functional"),
        ("import torch.nn\nnn = torch.nn", "torch.nn.functional"),
        ("from torch import nn\nimport torch.nn.functional as F\nimport torch", "F"),
    ],
)
def test_a_module_has_the_name_by_which_it_was_imported(
    analyzed: Callable[[str], Program], imports: str, name: str
) -> None:
    text = imports + PART.replace("F.relu", f"{name}.relu")
    assert with_own_names(HINT, analyzed(text), "ViT") == f"Use {name}.cross_entropy."


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("        self.cls = nn.Parameter(torch.randn(1, 1, dim))\n", "cls"),
        (
            "        self.a = nn.Parameter(torch.randn(1, 1, 9))\n        self.b = torch.randn(1, 1, 9)\n",
            "a",
        ),
        ("        self.a = nn.Parameter(torch.randn(1, 1, dim))\n" * 2, "a"),
        (
            "        self.a = nn.Parameter(torch.randn(1, 1, 9))\n"
            "        self.b = nn.Parameter(torch.randn(1, 1, 9))\n",
            "class_token",
        ),
        ("        self.a = nn.Parameter(torch.randn(1, 9, dim))\n", "class_token"),
    ],
)
def test_an_attribute_is_known_by_what_is_assigned_to_it(
    analyzed: Callable[[str], Program], lines: str, name: str
) -> None:
    """Where it is one name only."""
    hint = "self.{class_token = Parameter(randn(1, 1, _))} = 0"
    init = "    def __init__(self, dim):\n        super().__init__()\n"
    text = "import torch\nfrom torch import nn\n" + PART.replace(
        "    def forward", init + lines + "    def forward"
    )
    assert with_own_names(hint, analyzed(text), "ViT") == f"self.{name} = 0"


def test_other_braces_stay(analyzed: Callable[[str], Program]) -> None:
    hint = 'Write f"{x}", {"a": 1} and {a=b}.'
    assert with_own_names(hint, analyzed(PART), "ViT") == hint
