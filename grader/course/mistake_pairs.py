"""Homeworks with two known mistakes each, of different parts: does one hide or change the other?"""

import random
from collections.abc import Sequence
from itertools import combinations

from grader.course.composing import composed
from grader.course.variants import Kind, Variant

SEED = 20  # of the sample: the same pairs every time, so that what was wrong can be tried again


def mistake_pairs(known: Sequence[Variant], count: int) -> tuple[Variant, ...]:
    """A sample of pairs of mistakes in code, which covers every pair of parts before it repeats one.

    Args:
        known: The variants of an assignment.
        count: How many pairs; fewer where there are no more.
    """
    drawn = random.Random(SEED)
    by_part: dict[str, list[Variant]] = {}
    for each in known:
        if each.kind is Kind.MISTAKE and each.code:
            by_part.setdefault(each.parts[0], []).append(each)
    left = {}
    for one, other in combinations(by_part, 2):
        left[one, other] = [(first, second) for first in by_part[one] for second in by_part[other]]
        drawn.shuffle(left[one, other])
    found: list[Variant] = []
    while left and len(found) < count:
        for parts in list(left)[: count - len(found)]:
            found.append(_pair(*left[parts].pop()))
            if not left[parts]:
                del left[parts]
    return tuple(found)


def _pair(first: Variant, second: Variant) -> Variant:
    return Variant(
        Kind.PAIR,
        f"{first.name} + {second.name}",
        f"{first.file} and {second.file}",
        composed(first.source, second.code, after=True),
        (*first.parts, *second.parts),
        planted=(first.name, second.name),
    )
