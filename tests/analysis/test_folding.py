"""What can be read off the source without running it: literals and simple work on them, of bounded size."""

import ast
import time
import tracemalloc
from typing import Any

import pytest

from grader.analysis.constant_values import MOST_LETTERS, Unknown, string, value

NAMES = {"PART": "Attention", ".kind": "Multihead"}


def of(text: str) -> Any:
    """The value of an expression that knows no names."""
    return value(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 ** 7 * 3 - 1", 383),
        ("28 // 7 + 28 % 5", 7),
        ("-(3 / 4)", -0.75),
        ("not 0", True),
        ("(1, [2, 'three'])", (1, [2, "three"])),
        ("{'dim': 4 * 16, 'heads': 4}['dim']", 64),
        ("dict(lr=1e-3)['lr']", 1e-3),
        ("'ab' == 'a' + 'b'", True),
        ("4 if 'a' == 'a' else 5", 4),
        ("'abc'[::-1]", "cba"),
        ("[1, 2, 3][-1]", 3),
        ("'-'.join(['x', 'y'])", "x-y"),
        ("''.join(reversed('cba'))", "abc"),
        ("chr(65) + str(5) + 'x'.upper()", "A5X"),
        ("int('12') + float('0.5')", 12.5),
        ("f'{1}{\"a\"}b'", "1ab"),
        ("'MultiXAttention'.replace('X', 'head').removeprefix('Multi')", "headAttention"),
    ],
)
def test_what_is_written_is_read(text: str, expected: Any) -> None:
    found = of(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    "text",
    [
        *("x", "f(1)", "a.b", "[x]", "{**a}", "lambda: 1", "1 < 2"),
        *("1 / 0", "[1][5]", "{}['a']", "int('x')", "chr(-1)", "'a' - 'b'", "-'a'", "'a'.join([1])"),
        *("'a' @ 'b'", "f'{1:>5}'", "f'{[1]}'", "'a'.format(1)", "'a'.upper(x=1)", "'%s' % 'a'"),
        # what a few letters could make huge
        *("10 ** 13", "2 ** 65", "9 ** 9 ** 9", "10 ** 12 * 10", "'a' * 10 ** 9", "[1] * 10 ** 9"),
        "'a' * 5",
    ],
)
def test_all_else_is_unknown(text: str) -> None:
    with pytest.raises(Unknown):
        of(text)


@pytest.mark.parametrize(
    "text",
    [
        "'a'" + f".replace('a', '{'a' * 90}')" * 6,
        f"'{'g' * 9000}'.join('{'x' * 9000}')",
        'f"' + f"{{'{'x' * 9000}'}}" * 50 + '"',
        " + ".join(f"'{'x' * 900}'" for _ in range(50)),
        "[" + "1, " * (MOST_LETTERS + 1) + "]",
        f"'{'x' * (MOST_LETTERS + 1)}'",
    ],
    ids=["replaced again and again", "joined by much", "formatted", "added", "many items", "long"],
)
def test_nothing_grows_beyond_bounds(text: str) -> None:
    tree = ast.parse(text, mode="eval").body
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(Unknown):
        value(tree)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 20_000_000 and time.process_time() - began < 5


def test_what_a_lookup_knows_is_used_and_the_rest_stays_unknown() -> None:
    def known(node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and node.id == "DIM":
            return 64
        raise Unknown

    tree = ast.parse("[DIM * 2, DIM // 4]", mode="eval").body
    assert value(tree, known) == [128, 16]
    with pytest.raises(Unknown):
        value(ast.parse("OTHER * 2", mode="eval").body, known)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self.kind + 'head'.title() + PART", "MultiheadHeadAttention"),
        ("f'{PART}'.lower()", "attention"),
        ("PART[:3]", "Att"),
        ("PART + OTHER", None),
        ("self.other", None),
        ("a.b.kind", None),
        ("12", None),
    ],
)
def test_a_text_is_followed_through_constants(text: str, expected: str | None) -> None:
    assert string(ast.parse(text, mode="eval").body, NAMES) == expected
