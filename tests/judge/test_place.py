"""Where a mistake stands: at the only line of its kind of code, at worst where its component begins."""

import textwrap
from collections.abc import Callable

import pytest

from grader.domain.analyzed_program import Place, Program, Statement
from grader.domain.errors import CourseError
from grader.judge.source_places import looked_for, place_of

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
        (("scale",), 16),  # where it is assigned, not where it is used
        (("softmax()",), 20),  # a call of any holder
        (("softmax() | Softmax()",), 18),  # at two lines: nobody knows which
        (("softmax() | Softmax()", "_ ** -0.5"), 16),  # then the next kind
        (("softmax(dim=1)",), 20),  # the arguments that it has at least
        (("softmax(dim=0)", "Softmax"), 15),  # what is not there is passed over
        (("F.softmax()",), 20),
        (("nn.softmax()",), 18),
        (("_ @ _.transpose()",), 19),
        (("pattern",), 21),  # an argument
        (("final",), 11),  # in the definition, outside of its methods
        (("return",), 21),
        (("body",), 19),
        (("loop",), 18),  # there is none
        (("nowhere",), 18),
    ],
)
def test_the_only_line_of_a_kind_of_code(look_for: tuple[str, ...], line: int) -> None:
    assert place_of(program(ATTENTION), "Attention", look_for) == f"homework.py:{line}"


def test_of_close_lines_the_first_is_told_and_of_distant_ones_none() -> None:
    source = "def evaluate(model):\n    a = model(1)\n    b = 2\n    c = 3\n    d = (model(3), model(4))\n"
    assert place_of(program(source, name="evaluate"), "evaluate", ("model()",)) == "homework.py:12"
    apart = source.replace("    c = 3\n", "    c = 3\n\n")
    assert place_of(program(apart, name="evaluate"), "evaluate", ("model()",)) == "homework.py:11"
    apart = apart.replace("model(1)", "1")
    assert place_of(program(apart, name="evaluate"), "evaluate", ("model()",)) == "homework.py:16"


def test_a_call_of_what_is_kept_leads_to_where_it_is_made() -> None:
    """What is wrong of `self.attend(x)` stands where `attend` is made; what is missing beside it, there."""
    source = textwrap.dedent(
        """\
        class Attention(nn.Module):
            def __init__(self, dim):
                self.softmax = nn.Softmax(dim=1)

            def forward(self, x):
                return self.softmax(x)
        """
    )
    made, used = "homework.py:13", "homework.py:16"
    assert place_of(program(source), "Attention", ("softmax() | Softmax()",)) == made
    assert place_of(program(source), "Attention", ("softmax()",)) == used


def test_what_is_missing_has_the_place_where_it_belongs() -> None:
    source = "def f(m, d):\n    n = 0\n    for x in d:\n        m(x)\n        n += 1\n    return n\n"
    found = {
        word: place_of(program(source, name="f"), "f", (word,)).partition(":")[2]
        for word in ("body", "end", "loop", "loop_end", "for", "return")
    }
    assert found == {"body": "12", "end": "16", "loop": "14", "loop_end": "15", "for": "13", "return": "16"}
    twice = source.replace("    return n", "\n    for x in d:\n        m(x)\n    return n")
    assert place_of(program(twice, name="f"), "f", ("loop",)) == "homework.py:11"


def test_a_helper_and_a_constant_are_looked_at_where_the_part_has_nothing(
    analyzed: Callable[[str], Program],
) -> None:
    text = textwrap.dedent(
        """\
        import torch.nn as nn

        HEADS = 4

        def weights_of(scores):
            return scores.softmax(dim=1)

        class FeedForward(nn.Module):
            def forward(self, x):
                return x.softmax(dim=1)

        class Attention(nn.Module):
            def forward(self, x):
                return weights_of(x) * HEADS
        """
    )
    found = analyzed(text)
    assert place_of(found, "Attention", ("softmax()",)) == "homework.py:6"
    assert place_of(found, "Attention", ("HEADS",)) == "homework.py:14"
    assert place_of(found, "Attention", ("relu()",)) == "homework.py:13"


@pytest.mark.parametrize("text", ["softmax(", "_", "a = b", "return x"])
def test_what_cannot_be_looked_for_is_told(text: str) -> None:
    with pytest.raises(CourseError, match=r"^mistakes/a\.py: it cannot be looked for: .*Write names"):
        looked_for(text, "mistakes/a.py")


def test_commas_within_brackets_part_nothing() -> None:
    assert looked_for("f(_, 4), `_[:, 0]` | g(),\n h.", "") == ("f(_, 4)", "_[:, 0] | g()", "h")


def test_a_cell_of_a_notebook_counts_its_own_lines() -> None:
    assert (
        place_of(program(ATTENTION, file="In [3], cell 4", first=2), "Attention", ("softmax()",))
        == "In [3], line 11 (cell 4)"
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
    assert place_of(found, "ViT", ("sum()",)) == "homework.py:4"


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
