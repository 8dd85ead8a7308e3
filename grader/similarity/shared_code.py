"""How much of one student's own code is found in another's, and where."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from grader.similarity.fingerprints import STRETCH, fingerprints
from grader.similarity.work import CodeUnit

ENOUGH = 100  # tokens: the reference's own part has some 1,000, an Attention alone 150

Line = tuple[str, int]
"""File or cell, and line."""

_Spot = tuple[int, int]  # block, where in its row


@dataclass(frozen=True)
class Own:
    """A student's own code, ready to be compared.

    Attributes:
        rows: Block -> (token, its line).
        prints: Fingerprint -> where it begins.
        size: The tokens that could be found in another's code; a function of a line or two is not evidence.
    """

    rows: dict[int, list[tuple[str, Line]]]
    prints: dict[int, list[_Spot]]
    size: int = 0


@dataclass(frozen=True)
class Shares:
    """How much of each student's own code is found in the other's, 0 to 1."""

    one: float
    other: float

    @property
    def most(self) -> float:
        """The larger: who copies a part of a larger work has it all from there."""
        return max(self.one, self.other)


@dataclass(frozen=True)
class Passage:
    """A function of one student's and the function of the other's that has most in common with it.

    Attributes:
        one, other: The lines that are in common, in order.
        tokens: How many tokens these lines have in common.
    """

    one: tuple[Line, ...]
    other: tuple[Line, ...]
    tokens: int


def own(units: Iterable[CodeUnit]) -> Own:
    """A student's own units, function by function, so that their order does not matter."""
    rows: dict[int, list[tuple[str, Line]]] = defaultdict(list)
    for unit in units:
        rows[unit.block] += [(token, (unit.file, line)) for token, line in unit.tokens]
    prints: dict[int, list[_Spot]] = defaultdict(list)
    for block, row in rows.items():
        for value, start in fingerprints([token for token, _ in row]):
            prints[value].append((block, start))
    made = Own(dict(rows), dict(prints))
    return replace(made, size=len(_covered(made, made.prints)))


def shares(one: Own, other: Own) -> Shares:
    """The shares; none where a student has too little code of their own to tell."""
    if min(one.size, other.size) < ENOUGH:
        return Shares(0.0, 0.0)
    common = one.prints.keys() & other.prints.keys()
    return Shares(*(len(_covered(side, common)) / side.size for side in (one, other)))


def passages(one: Own, other: Own) -> tuple[Passage, ...]:
    """What is in common, function by function, in the order of `one`."""
    common = one.prints.keys() & other.prints.keys()
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for value in common:
        for block in {block for block, _ in one.prints[value]}:
            votes[block].update({block for block, _ in other.prints[value]})
    found = []
    for block in sorted(votes):
        best = min(votes[block], key=lambda candidate: (-votes[block][candidate], candidate))
        shared = {
            value
            for value in common
            if any(b == block for b, _ in one.prints[value])
            and any(b == best for b, _ in other.prints[value])
        }
        here = _covered(one, shared, block)
        there = _covered(other, shared, best)
        found.append(Passage(_lines(one, here), _lines(other, there), len(here)))
    return tuple(found)


def _covered(side: Own, values: Iterable[int], only: int | None = None) -> set[_Spot]:
    """The tokens that stand in a stretch with one of the fingerprints."""
    return {
        (block, start + step)
        for value in values
        for block, start in side.prints[value]
        if only is None or block == only
        for step in range(min(STRETCH, len(side.rows[block]) - start))
    }


def _lines(side: Own, spots: Iterable[_Spot]) -> tuple[Line, ...]:
    return tuple(dict.fromkeys(_in_order(side, spots)))


def _in_order(side: Own, spots: Iterable[_Spot]) -> Iterator[Line]:
    return (side.rows[block][at][1] for block, at in sorted(spots))
