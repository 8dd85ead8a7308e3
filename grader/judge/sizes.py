"""Factors of a wrong size: `20 = heads * dim_head` says more than 20.

A heuristic over the constructor's sizes: the only one, or the only product of two, with that value. Where
there are none or several nothing is said. It adds a sentence and decides nothing: `component` says that the
shape is wrong.

Tests: tests/judge/test_sizes.py
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

LEAST = 3  # smaller numbers are products of many things by chance


def wrong_size_in_words(found: Sequence[int], expected: Sequence[int], sizes: Mapping[str, int]) -> str:
    """The first wrong axis of a shape in terms of the sizes that a part was constructed with.

    Args:
        found, expected: Shapes; where they have different numbers of axes, nothing is said.
        sizes: By the names of the constructor's parameters.

    Returns:
        `Axis 2 has 20 = heads * dim_head values; it should have 22 = dim.`; empty where no size, or
        more than one product, comes to the number.
    """
    if len(found) != len(expected):
        return ""
    axis = next(number for number, size in enumerate(found) if size != expected[number])
    made_of = _product(found[axis], sizes)
    if not made_of:
        return ""
    wanted = _product(expected[axis], sizes)
    should = f"{expected[axis]} = {wanted}" if wanted else str(expected[axis])
    return f"Axis {axis} has {found[axis]} = {made_of} values; it should have {should}."


def _product(number: int, sizes: Mapping[str, int]) -> str:
    """The only size, or else the only product of two sizes, of this value; empty where there is none."""
    if number < LEAST:
        return ""
    for factors in (1, 2):
        fitting = [
            names
            for names in combinations(sizes, factors)
            if prod(sizes[name] for name in names) == number and all(sizes[name] >= 2 for name in names)
        ]
        if fitting:
            return " * ".join(fitting[0]) if len(fitting) == 1 else ""
    return ""
