"""Where a mistake is likely to stand: as close as its names tell, at worst where its component begins."""

import textwrap
from collections.abc import Callable

import pytest

from grader.domain.program import Place, Program, Statement
from grader.judge.place import place_of

ATTENTION = """\
@final
class Attention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)
        self.scale = dim ** -0.5

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        weights = F.softmax(scores * self.scale, dim=1)
        return rearrange(weights @ x, pattern="b n d -> b n d")
"""


def program(source: str, *, name: str = "Attention", file: str = "homework.py", first: int = 11) -> Program:
    """A program with one statement, whose definition stands in the line that begins with class or def."""
    lines = source.splitlines()
    inside = next((n for n, line in enumerate(lines) if line.lstrip().startswith(("class ", "def "))), 0)
    statement = Statement(source, Place(file, first), (name,), "definition")
    return Program("homework.py", (statement,), defined={name: Place(file, first + inside)})


@pytest.mark.parametrize(
    ("look_for", "line"),
    [
        ((), 18),  # forward begins there
        (("softmax",), 20),  # forward before __init__, though that comes first
        (("scale", "softmax"), 20),  # the likeliest name first
        (("dim_head", "Softmax"), 15),  # what is not there is passed over; then the other methods
        (("pattern",), 21),  # a keyword
        (("final",), 11),  # in the definition, outside of its methods
        (("b n d",), 18),  # texts are not searched
        (("nowhere",), 18),
    ],
)
def test_the_line_that_mentions_a_name(look_for: tuple[str, ...], line: int) -> None:
    assert place_of(program(ATTENTION), "Attention", look_for) == f"homework.py:{line}"


def test_the_first_of_several_lines_is_told() -> None:
    source = "def evaluate(model):\n    a = model(1)\n    b = model(2)\n"
    assert place_of(program(source, name="evaluate"), "evaluate", ("model",)) == "homework.py:12"


def test_a_cell_of_a_notebook_counts_its_own_lines() -> None:
    assert (
        place_of(program(ATTENTION, file="cell 4", first=2), "Attention", ("softmax",)) == "cell 4, line 11"
    )


def test_without_a_forward_of_its_own_the_component_is_the_place() -> None:
    source = "class Attention(Other):\n    def __init__(self, dim):\n        super().__init__()\n"
    assert place_of(program(source), "Attention") == "homework.py:11"
    function = "def evaluate(model):\n    return 1\n"
    assert place_of(program(function, name="evaluate"), "evaluate") == "homework.py:11"
    named_forward = "def forward(model):\n    return 1\n"
    assert place_of(program(named_forward, name="forward"), "forward", ("nowhere",)) == "homework.py:11"


def test_what_is_not_defined_has_no_place() -> None:
    assert place_of(program(ATTENTION), "ViT", ("softmax",)) == ""
    assert place_of(Program("homework.py"), "ViT") == ""


def test_a_component_under_another_name_is_found_by_its_lines(analyzed: Callable[[str], Program]) -> None:
    text = "\n".join(
        ["from torch import nn", "class Vit(nn.Module):", "  def forward(self, x):", "    return sum(x)"]
    )
    found = analyzed(text)
    assert [near.expected for near in found.near_names] == ["ViT"]
    assert place_of(found, "ViT", ("sum",)) == "homework.py:4"


def test_a_definition_within_a_block_is_found(analyzed: Callable[[str], Program]) -> None:
    text = textwrap.dedent(
        """\
        import torch.nn as nn

        if True:
            class Attention(nn.Module):
                def forward(self, x):
                    return x.softmax(-1)
        """
    )
    assert place_of(analyzed(text), "Attention", ("softmax",)) == "homework.py:6"
    assert place_of(analyzed(text), "Attention") == "homework.py:4"


@pytest.mark.parametrize(
    "source", ["class Attention(:\n", "class Attention: x = " + "-" * 100_000 + "1\n", ""]
)
def test_a_source_that_cannot_be_parsed_has_the_components_place(source: str) -> None:
    """The judge has other limits than the analysis had."""
    assert place_of(program(source), "Attention", ("softmax",)) == "homework.py:11"
