"""Compares all pairs of a class, also with an earlier class: shared code, weights and figures.

It finds how much of one student's own code is in another's, where it is, and which pairs have so much in
common that people should look. Code is compared by winnowing: from all stretches of a row of tokens, a few
are chosen, and the same ones wherever a stretch occurs (Schleimer, Wilkerson, Aiken: Winnowing: Local
Algorithms for Document Fingerprinting, SIGMOD 2003). Two rows that share WINDOW + STRETCH - 1 tokens in a
row share a fingerprint; fewer than STRETCH tokens are not found.

It is written here because no library fits. copydetect 0.5 and compare50 1.2 use Python's `hash`, which
differs in every process, so the same class would have other scores on every run. compare50 is also under
the GPL and needs an attrs from before 2021, and copydetect has had no release since March 2024.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations, product

from grader.similarity.compared_work import CodePrints, CodeUnit, ComparedPicture, SampledWeights, Work
from grader.similarity.normalized_code import units_not_given
from grader.similarity.weights import Likeness, likeness, without_given

STRETCH = 16  # tokens: the paper's k
WINDOW = 4  # stretches: the paper's w


def fingerprints(row: Sequence[str], stretch: int = STRETCH, window: int = WINDOW) -> list[tuple[int, int]]:
    """The fingerprints of a row as (value, where its stretch begins), in order.

    Args:
        row: Tokens.
        stretch: The length of what is compared, in tokens.
        window: At least one of this many neighboring stretches is chosen.
    """
    values = [_value(row[start : start + stretch]) for start in range(len(row) - stretch + 1)]
    chosen: list[tuple[int, int]] = []
    for start in range(max(len(values) - window + 1, min(len(values), 1))):
        neighbors = range(start, min(start + window, len(values)))
        # the smallest, or the rightmost of equal ones: neighboring windows then agree as often as possible
        chosen_at = min(neighbors, key=lambda index: (values[index], -index))
        if not chosen or chosen[-1][1] != chosen_at:
            chosen.append((values[chosen_at], chosen_at))
    return chosen


def _value(stretch: Sequence[str]) -> int:
    # 64 bits, and the same in every process, unlike Python's own hash
    return int.from_bytes(
        blake2b("\0".join(stretch).encode("utf-8", "replace"), digest_size=8).digest(), "big"
    )


# --- shared code -----------------------------------------------------------------------------------------


ENOUGH = 100  # tokens: the reference's own part has some 1,000, an Attention alone 150

Line = tuple[str, int]
"""File or cell, and line."""

_Spot = tuple[int, int]  # block, position in its row


@dataclass(frozen=True)
class Own:
    """A student's own code, ready to be compared.

    Attributes:
        rows: Block -> (token, its line).
        prints: Fingerprint -> where it begins.
        size: How many tokens could be found in another's code; a function of a line or two is not evidence.
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
        """The larger share: whoever copies part of a larger work has all of their code from it."""
        return max(self.one, self.other)


@dataclass(frozen=True)
class Passage:
    """A function of one student and the function of the other that has the most in common with it.

    Attributes:
        one, other: The common lines, in order.
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
    student = Own(dict(rows), dict(prints))
    return replace(student, size=len(_covered(student, student.prints)))


def kept(student: Own) -> CodePrints:
    """What may be kept of a student's code for later terms."""
    starts = ((value, block, start) for value, spots in student.prints.items() for block, start in spots)
    return CodePrints({block: len(row) for block, row in student.rows.items()}, tuple(sorted(starts)))


def _own_of(work: Work, given: frozenset[tuple[str, ...]]) -> Own | None:
    """The student's own code, or what was kept of it; None without either."""
    if work.prints is None:
        return own(units_not_given(work.code, given)) if work.code else None
    unknown = ("", ("", 0))  # neither tokens nor lines were kept
    rows = {block: [unknown] * length for block, length in work.prints.lengths.items()}
    prints: dict[int, list[_Spot]] = defaultdict(list)
    for value, block, start in work.prints.starts:
        prints[value].append((block, start))
    student = Own(rows, dict(prints))
    return replace(student, size=len(_covered(student, student.prints)))


def shares(mine: Own, theirs: Own) -> Shares:
    """How much each has of the other's code; zero if a student has too little code of their own to tell."""
    if min(mine.size, theirs.size) < ENOUGH:
        return Shares(0.0, 0.0)
    common = mine.prints.keys() & theirs.prints.keys()
    return Shares(*(len(_covered(side, common)) / side.size for side in (mine, theirs)))


def passages(mine: Own, theirs: Own) -> tuple[Passage, ...]:
    """What is in common, function by function, in the order of `mine`."""
    common = mine.prints.keys() & theirs.prints.keys()
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for value in common:
        for block in {block for block, _ in mine.prints[value]}:
            votes[block].update({block for block, _ in theirs.prints[value]})
    common_passages = []
    for block in sorted(votes):
        best = min(votes[block], key=lambda candidate: (-votes[block][candidate], candidate))
        shared = {
            value
            for value in common
            if any(b == block for b, _ in mine.prints[value])
            and any(b == best for b, _ in theirs.prints[value])
        }
        my_tokens = _covered(mine, shared, block)
        their_tokens = _covered(theirs, shared, best)
        common_passages.append(Passage(_lines(mine, my_tokens), _lines(theirs, their_tokens), len(my_tokens)))
    return tuple(common_passages)


def _covered(side: Own, values: Iterable[int], only: int | None = None) -> set[_Spot]:
    """The tokens within a stretch that has one of the fingerprints."""
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
    return (side.rows[block][position][1] for block, position in sorted(spots))


# --- pairs -----------------------------------------------------------------------------------------------


# Measured on solutions put together from the legitimate forms: two without a common part share at most 0.15
# of their own code, two with one common part of seven less than 0.45, a disguised copy 1.0: see
# docs/ta/similar.md.
THRESHOLD = 0.5
MANY_SHARE, MANY_LEAST = 1 / 3, 3  # of those with figures: what so many have is the data's or the handout's
DETAILED = 60  # pairs that are shown side by side

Report = Callable[[int, int], None]
"""Called with (pairs compared so far, all pairs)."""


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
        passages: Where the common code is; only for the first DETAILED pairs.
    """

    one: Work
    other: Work
    code: Shares
    weights: Likeness | None = None
    figures: tuple[SharedFigure, ...] = ()
    passages: tuple[Passage, ...] = ()

    @property
    def score(self) -> float:
        """The value by which pairs are ordered, 0 to 1: the strongest thing that they have in common."""
        strengths = [self.code.most, 1.0 if self.figures else 0.0]
        if self.weights is not None and self.weights.near:
            strengths.append(1.0 - (self.weights.distance or 0.0))
        return max(strengths)


@dataclass(frozen=True)
class Comparison:
    """What was found in a class.

    Attributes:
        pairs: Those with something in common, the strongest first.
        scores: The larger share of code in every pair of this class that could be compared, sorted.
        left_out: (submission, what of it could not be compared, and why).
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
            merged = set(ids).union(*(sets.get(student_id, set()) for student_id in ids))
            sets.update(dict.fromkeys(merged, merged))
        groups = {tuple(sorted(merged)) for merged in sets.values() if len(merged) > 2}
        return tuple(sorted(groups, key=lambda group: (-len(group), group)))


def shown_id(work: Work) -> str:
    """The student's id, with a mark for one of an earlier class."""
    return f"{work.student_id} (before)" if work.before else work.student_id


def compared(
    works: Sequence[Work],
    *,
    given: frozenset[tuple[str, ...]],
    given_figures: Collection[str] = (),
    given_weights: Sequence[SampledWeights] = (),
    together: Mapping[str, Collection[str]] | None = None,
    threshold: float = THRESHOLD,
    report: Report = lambda done, pairs: None,
) -> Comparison:
    """What the submissions of a class have in common with each other and with an earlier class.

    Args:
        works: In any order; the result does not depend on it.
        given: The units that the course handed out, by their form.
        given_figures: Digests of the pictures that the course handed out.
        given_weights: Checkpoints that the course handed out.
        together: Student -> those of this class who may have worked with the student: they are no pair.
        threshold: The share of own code, 0 to 1, from which a pair is listed for its code.
        report: Called with the progress.
    """
    ordered = sorted(works, key=lambda work: (work.before, work.student_id))
    owns = [_own_of(work, given) for work in ordered]
    weights = [_own_weights(work, given_weights) for work in ordered]
    rare = _rare_figures(ordered, given_figures)
    index_pairs = list(_pairs_to_compare(ordered, together or {}))
    scores: list[float] = []
    listed: list[tuple[Pair, Own | None, Own | None]] = []
    for count, (i, j) in enumerate(index_pairs, start=1):
        mine, theirs = owns[i], owns[j]
        code = shares(mine, theirs) if mine and theirs else Shares(0.0, 0.0)
        if mine and theirs and min(mine.size, theirs.size) >= ENOUGH and not ordered[j].before:
            scores.append(code.most)
        alike = _alike(weights[i], weights[j])
        pair = Pair(ordered[i], ordered[j], code, alike, _figures(rare[i], rare[j]))
        if code.most >= threshold or pair.figures or (pair.weights and pair.weights.near):
            listed.append((pair, mine, theirs))
        report(count, len(index_pairs))
    listed.sort(
        key=lambda entry: (
            -entry[0].score,
            -entry[0].code.most,
            shown_id(entry[0].one),
            shown_id(entry[0].other),
        )
    )
    return Comparison(
        tuple(ordered),
        tuple(
            _detailed(*entry) if rank < DETAILED and entry[0].code.most >= threshold else entry[0]
            for rank, entry in enumerate(listed)
        ),
        tuple(sorted(scores)),
        tuple(_left_out(ordered, owns)),
        threshold,
    )


def _pairs_to_compare(
    works: Sequence[Work], together: Mapping[str, Collection[str]]
) -> Iterator[tuple[int, int]]:
    """Each pair within this class, and each student of it with each earlier one except themselves."""
    now = [index for index, work in enumerate(works) if not work.before]
    earlier = [index for index, work in enumerate(works) if work.before]
    for i, j in combinations(now, 2):
        if works[j].student_id not in together.get(works[i].student_id, ()):
            yield i, j
    for i, j in product(now, earlier):
        if works[i].student_id != works[j].student_id:
            yield i, j


def _own_weights(work: Work, given: Sequence[SampledWeights]) -> SampledWeights | None:
    """What a student's training made of the weights; None without any."""
    weights = work.weights
    for one in given:
        weights = without_given(weights, one) if weights is not None else None
    return weights


def _alike(mine: SampledWeights | None, theirs: SampledWeights | None) -> Likeness | None:
    return None if mine is None or theirs is None else likeness(mine, theirs)


def _rare_figures(works: Sequence[Work], given: Collection[str]) -> list[dict[str, ComparedPicture]]:
    """For each submission, the pictures that neither the course nor many students have: digest -> first."""
    by_digest = [{figure.digest: figure for figure in reversed(work.figures)} for work in works]
    counts: dict[bool, Counter[str]] = defaultdict(Counter)
    sizes = Counter(work.before for work in works if work.figures)  # a script without a report has none
    for work, figures in zip(works, by_digest, strict=True):
        counts[work.before].update(figures.keys())
    common = set(given)
    for before, counter in counts.items():
        many = max(MANY_LEAST, int(MANY_SHARE * sizes[before]) + 1)
        common |= {digest for digest, count in counter.items() if count >= many}
    return [
        {digest: figure for digest, figure in pictures.items() if digest not in common}
        for pictures in by_digest
    ]


def _figures(
    mine: dict[str, ComparedPicture], theirs: dict[str, ComparedPicture]
) -> tuple[SharedFigure, ...]:
    return tuple(SharedFigure(figure, theirs[digest]) for digest, figure in mine.items() if digest in theirs)


def _detailed(pair: Pair, mine: Own | None, theirs: Own | None) -> Pair:
    if mine is None or theirs is None or pair.other.prints is not None:
        return pair
    return Pair(pair.one, pair.other, pair.code, pair.weights, pair.figures, passages(mine, theirs))


def _left_out(works: Sequence[Work], owns: Sequence[Own | None]) -> Iterator[tuple[Work, str]]:
    for work, own_code in zip(works, owns, strict=True):
        for sentence in work.left_out:
            yield work, sentence
        if own_code is not None and own_code.size < ENOUGH:
            why = "hardly any code of the student's own" if own_code.size else "no code of the student's own"
            yield work, f"The code was not compared: there is {why} beside what was handed out."
