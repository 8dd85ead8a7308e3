"""Formulas of sizes compute with whole numbers, and with nothing else."""

import pytest

from grader.domain.size_formula import MOST, SizeFormula


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(image // patch) ** 2 + 1", 50),
        ("3 * dim * heads", 1536),
        ("image % patch", 0),
        ("dim - 1", 63 * 2 + 1),
        ("7", 7),
        ("dim // nothing", None),
        ("dim % nothing", None),
        ("dim * missing", None),
        ("dim ** dim", None),
        ("dim ** (nothing - 1)", None),
        ("(dim ** 8) * (dim ** 8)", None),
        ("huge * huge", None),
    ],
)
def test_what_a_formula_is(text: str, value: int | None) -> None:
    numbers = {"image": 28, "patch": 4, "dim": 128, "heads": 4, "nothing": 0, "huge": MOST}
    assert SizeFormula.read(text).value(numbers) == value


def test_its_names_are_known_when_it_is_read() -> None:
    assert SizeFormula.read("b * (a + b) - 3").names == ("a", "b")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a.b",
            "f(3)",
            "1.5",
            "-a",
            "a / b",
            "a if b else c",
            "__import__('os')",
            "True",
            "a[0]",
            "'x'",
        ),
        *("a, b", "(" * 300 + ")" * 300, "a := 3", "lambda: 3"),
    ],
)
def test_nothing_else_is_a_formula(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(it is not a formula|'.*' is none of)"):
        SizeFormula.read(text)
