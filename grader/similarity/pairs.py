"""All pairs of a class, and with an earlier one, that have something in common."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from grader.similarity.code import own_units
from grader.similarity.shared_code import ENOUGH, Own, Passage, Shares, own, passages, shares
from grader.similarity.weights import Likeness, likeness
from grader.similarity.work import ComparedPicture, Work

# Of solutions put together from the legitimate forms, two without a part in common share at most 0.15 of
# their own code, two with one part of seven in common less than 0.45, a disguised copy 1.0: see
# docs/ta/similar.md.
THRESHOLD = 0.5
MANY_SHARE, MANY_LEAST = 1 / 3, 3  # a figure that so many have is of the data or of the handout
DETAILED = 60  # pairs that are shown side by side

Report = Callable[[int, int], None]
"""Told (pairs compared, pairs in all)."""


@dataclass(frozen=True)
class SharedFigure:
    """A picture that two students have."""

    one: ComparedPicture
    other: ComparedPicture


@dataclass(frozen=True)
class Pair:
    """Two submissions with something in common.

    Attributes:
        code: How much of each one's own code is in the other's.
        passages: Where; only of the first DETAILED pairs.
    """

    one: Work
    other: Work
    code: Shares
    weights: Likeness | None = None
    figures: tuple[SharedFigure, ...] = ()
    passages: tuple[Passage, ...] = ()

    @property
    def score(self) -> float:
        """What pairs are ordered by, 0 to 1: the strongest of what they have in common."""
        found = [self.code.most, 1.0 if self.figures else 0.0]
        if self.weights is not None and self.weights.near:
            found.append(1.0 - (self.weights.distance or 0.0))
        return max(found)


@dataclass(frozen=True)
class Comparison:
    """What was found in a class.

    Attributes:
        pairs: Those with something in common, the strongest first.
        scores: The code's larger share in every pair of this class that could be compared, sorted.
        left_out: (student, what of them could not be compared and why).
    """

    works: tuple[Work, ...]
    pairs: tuple[Pair, ...]
    scores: tuple[float, ...]
    left_out: tuple[tuple[Work, str], ...]
    threshold: float

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Sets of three or more students that are connected by pairs, the largest first."""
        sets: dict[str, set[str]] = {}
        for pair in self.pairs:
            ids = [shown_id(pair.one), shown_id(pair.other)]
            merged = set(ids).union(*(sets.get(one, set()) for one in ids))
            sets.update(dict.fromkeys(merged, merged))
        found = {tuple(sorted(merged)) for merged in sets.values() if len(merged) > 2}
        return tuple(sorted(found, key=lambda group: (-len(group), group)))


def shown_id(work: Work) -> str:
    """The student's id, with a mark for one of an earlier class."""
    return f"{work.student_id} (before)" if work.before else work.student_id


def compared(
    works: Sequence[Work],
    *,
    given: frozenset[tuple[str, ...]],
    given_figures: Collection[str] = (),
    threshold: float = THRESHOLD,
    report: Report = lambda done, whole: None,
) -> Comparison:
    """What the submissions of a class have in common with each other and with an earlier class.

    Args:
        works: In any order; the result does not depend on it.
        given: The units that the course handed out, by their form.
        given_figures: Digests of the pictures that the course handed out.
        threshold: The share of own code, 0 to 1, from which on a pair is listed for its code.
        report: Told how far it is.
    """
    ordered = sorted(works, key=lambda work: (work.before, work.student_id))
    owns = [own(own_units(work.code, given)) if work.code else None for work in ordered]
    rare = _rare_figures(ordered, given_figures)
    wanted = list(_pairs_to_compare(ordered))
    scores: list[float] = []
    found: list[tuple[Pair, Own | None, Own | None]] = []
    for count, (i, j) in enumerate(wanted, start=1):
        mine, theirs = owns[i], owns[j]
        code = shares(mine, theirs) if mine and theirs else Shares(0.0, 0.0)
        if mine and theirs and min(mine.size, theirs.size) >= ENOUGH and not ordered[j].before:
            scores.append(code.most)
        pair = Pair(
            ordered[i], ordered[j], code, _weights(ordered[i], ordered[j]), _figures(rare[i], rare[j])
        )
        if code.most >= threshold or pair.figures or (pair.weights and pair.weights.near):
            found.append((pair, mine, theirs))
        report(count, len(wanted))
    found.sort(
        key=lambda one: (-one[0].score, -one[0].code.most, shown_id(one[0].one), shown_id(one[0].other))
    )
    return Comparison(
        tuple(ordered),
        tuple(
            _detailed(*one) if at < DETAILED and one[0].code.most >= threshold else one[0]
            for at, one in enumerate(found)
        ),
        tuple(sorted(scores)),
        tuple(_left_out(ordered, owns)),
        threshold,
    )


def _pairs_to_compare(works: Sequence[Work]) -> Iterator[tuple[int, int]]:
    """Each two of this class, and each of this class with each earlier one but their own."""
    now = [index for index, work in enumerate(works) if not work.before]
    earlier = [index for index, work in enumerate(works) if work.before]
    yield from combinations(now, 2)
    for i, j in product(now, earlier):
        if works[i].student_id != works[j].student_id:
            yield i, j


def _weights(one: Work, other: Work) -> Likeness | None:
    if one.weights is None or other.weights is None:
        return None
    return likeness(one.weights, other.weights)


def _rare_figures(works: Sequence[Work], given: Collection[str]) -> list[dict[str, ComparedPicture]]:
    """Of each submission, the pictures that neither the course gave nor many have: digest -> the first."""
    held = [{figure.digest: figure for figure in reversed(work.figures)} for work in works]
    counts: dict[bool, Counter[str]] = defaultdict(Counter)
    sizes = Counter(work.before for work in works)
    for work, figures in zip(works, held, strict=True):
        counts[work.before].update(figures.keys())
    common = set(given)
    for before, counter in counts.items():
        many = max(MANY_LEAST, int(MANY_SHARE * sizes[before]) + 1)
        common |= {digest for digest, count in counter.items() if count >= many}
    return [{digest: figure for digest, figure in one.items() if digest not in common} for one in held]


def _figures(one: dict[str, ComparedPicture], other: dict[str, ComparedPicture]) -> tuple[SharedFigure, ...]:
    return tuple(SharedFigure(figure, other[digest]) for digest, figure in one.items() if digest in other)


def _detailed(pair: Pair, mine: Own | None, theirs: Own | None) -> Pair:
    if mine is None or theirs is None:
        return pair
    return Pair(pair.one, pair.other, pair.code, pair.weights, pair.figures, passages(mine, theirs))


def _left_out(works: Sequence[Work], owns: Sequence[Own | None]) -> Iterator[tuple[Work, str]]:
    for work, its in zip(works, owns, strict=True):
        for sentence in work.left_out:
            yield work, sentence
        if its is not None and its.size < ENOUGH:
            why = "hardly any code of the student's own" if its.size else "no code of the student's own"
            yield work, f"The code was not compared: there is {why} beside what was handed out."
