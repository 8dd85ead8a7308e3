"""Sentences with named placeholders, matched against sentences that were composed of them.

`{passed} of {total} checks passed.` fits `10 of 12 checks passed.` What somebody else wrote stands in marks
(see `grader.domain.quoting`), and no placeholder begins or ends within them: hostile text can neither end a
placeholder nor be taken for words of ours. Matching is linear in the sentence's length.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.domain.quoting import CLOSE, CODE, OPEN

_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_MARKED = re.compile(f"{CODE}[^{CODE}]*{CODE}|{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
_BREAK = re.compile(r"(?<=[.!?]) (?=\S)")
STRUCTURE = 4  # with so few letters of its own a pattern orders words rather than saying something


@dataclass(frozen=True)
class QuotedSpans:
    """Where a sentence holds words that are not ours.

    Attributes:
        spans: (begin, end) of each, its marks included, ascending.
    """

    spans: tuple[tuple[int, int], ...]

    def may_divide(self, at: int) -> bool:
        """Whether a placeholder may begin or end at an index: not deep within a quotation or code."""
        index = bisect_left(self.spans, (at, -1)) - 1
        if index < 0:
            return True
        begin, end = self.spans[index]
        return at >= end or at in (begin + 1, end - 1)

    def within(self, at: int) -> bool:
        """Whether an index lies within a quotation or code."""
        index = bisect_left(self.spans, (at, -1)) - 1
        return index >= 0 and at < self.spans[index][1]


def marks(text: str) -> QuotedSpans:
    """The quotations and pieces of code in a sentence."""
    return QuotedSpans(tuple(found.span() for found in _MARKED.finditer(text)))


def unmarked(text: str) -> str:
    """A text in which a quotation or a piece of code is one word."""
    return _MARKED.sub("…", text)


def sentences(text: str) -> tuple[str, ...]:
    """A text, sentence by sentence; what is quoted is not divided. Joined by spaces they are the text."""
    known, made, begin = marks(text), [], 0
    for found in _BREAK.finditer(text):
        if not known.within(found.start()):
            made.append(text[begin : found.start()])
            begin = found.end()
    return (*made, text[begin:])


@dataclass(frozen=True)
class Pattern:
    """A sentence with placeholders.

    Attributes:
        literals: What stands before, between and behind the placeholders.
        names: The placeholders, in order.
    """

    literals: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """What the most specific pattern has the least of."""
        return -sum(map(len, self.literals)), len(self.names)

    @property
    def orders(self) -> bool:
        """Whether it says next to nothing by itself, as `{first} and {last}`."""
        return sum(map(str.isalpha, "".join(self.literals))) <= STRUCTURE

    def match(self, text: str, known: QuotedSpans) -> Mapping[str, str] | None:
        """Placeholder -> the text in its place; None where the sentence is another one.

        Args:
            text: The sentence.
            known: Its `marks`.
        """
        first, *middle, last = self.literals
        if not text.startswith(first) or not text.endswith(last):
            return None
        end = len(text) - len(last)
        ends, begin = [], len(first)
        begins = [begin]
        for literal in middle:
            at = text.find(literal, begin + 1, end)
            while at >= 0 and not (known.may_divide(at) and known.may_divide(at + len(literal))):
                at = text.find(literal, at + 1, end)
            if at < 0:
                return None
            ends.append(at)
            begin = at + len(literal)
            begins.append(begin)
        ends.append(end)
        if end <= begin or not known.may_divide(begins[0]) or not known.may_divide(end):
            return None
        values: dict[str, str] = {}
        for name, start, stop in zip(self.names, begins, ends, strict=True):
            value = text[start:stop]
            if values.setdefault(name, value) != value or value.count(CODE) % 2:
                return None
        return values


def pattern(message: str) -> Pattern | None:
    """The pattern that a catalogue's entry is; None where it has no placeholders."""
    pieces = _FIELD.split(message)
    literals = tuple(piece.replace("{{", "{").replace("}}", "}") for piece in pieces[::2])
    if len(literals) < 2 or not all(literals[1:-1]):
        return None
    return Pattern(literals, tuple(pieces[1::2]))


def filled(message: str, values: Mapping[str, str]) -> str:
    """A translation with its placeholders replaced; one that it does not know stays as it is written."""
    pieces: Sequence[str] = _FIELD.split(message)
    made = [
        values.get(piece, f"{{{piece}}}") if index % 2 else piece.replace("{{", "{").replace("}}", "}")
        for index, piece in enumerate(pieces)
    ]
    return "".join(made)
