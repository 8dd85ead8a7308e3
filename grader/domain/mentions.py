"""Where texts mention persons, by their ids and names, and the same texts without it.

A mention is an id that stands by itself, whatever digits it is written in, or a name in one of the forms in
which an LMS writes it. An id or name that is too short to be anybody's alone is found only where it is a
whole value. It decides nothing about files or rows. Tests: `tests/domain/test_mentions.py`.
"""

import html
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

PLACEHOLDER = "forgotten"
SHORTEST_ID, SHORTEST_NAME = 5, 6  # characters of an id, or of a name in one word, that are nobody else's
LONG_NUMBER = 8  # digits
_DIGITS = {str(value): f"[{value}{chr(0x6F0 + value)}{chr(0x660 + value)}]" for value in range(10)}


@dataclass(frozen=True)
class Mentions:
    """The ids and names by which some persons are mentioned.

    Attributes:
        ids: As they are recorded.
        names: Of these persons, as an LMS gives them.
        others: The ids of all other persons that are known: a text may mention them, too.
        word: What stands in place of a mention.
    """

    ids: frozenset[str]
    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    word: str = PLACEHOLDER

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        ids = [_id_pattern(one) for one in sorted(self.ids) if len(one) >= SHORTEST_ID]
        names = sorted({form for name in self.names for form in _name_forms(name)}, key=len, reverse=True)
        return (
            re.compile("|".join([*ids, *map(_name_pattern, names)]), re.IGNORECASE) if ids or names else None
        )

    @cached_property
    def _folded(self) -> frozenset[str]:
        return frozenset(one.casefold() for one in (*self.ids, *self.names))

    def are_whole(self, value: str) -> bool:
        """Whether a text is nothing but an id or a name."""
        stripped = value.strip()
        match = self._pattern.fullmatch(stripped) if self._pattern else None
        return stripped.casefold() in self._folded or match is not None

    def are_in(self, text: str) -> bool:
        """Whether a text mentions one of the persons."""
        return (self._pattern is not None and self._pattern.search(text) is not None) or self.are_whole(text)

    def are_in_path(self, path: str) -> bool:
        """Whether a part of a path, with `/` between the parts, mentions one of the persons."""
        return any(self.are_in(part) or self.are_whole(part.partition(".")[0]) for part in path.split("/"))

    def names_others(self, text: str) -> bool:
        """Whether a text mentions somebody else, too."""
        return self._other_pattern is not None and self._other_pattern.search(text) is not None

    @cached_property
    def _other_pattern(self) -> re.Pattern[str] | None:
        patterns = [_id_pattern(one) for one in sorted(self.others) if len(one) >= SHORTEST_ID]
        return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a text mentions one of the persons: (begin, end)."""
        if self._pattern is not None:
            for match in self._pattern.finditer(text):
                yield match.span()

    def replaced(self, text: str) -> str:
        """The text with a word in place of each mention."""
        if self.are_whole(text):
            return self.word
        return self._pattern.sub(self.word, text) if self._pattern is not None else text

    @cached_property
    def _raw_needles(self) -> tuple[bytes, ...]:
        texts = [one for one in self.ids if len(one) >= SHORTEST_ID]
        texts += [form for name in self.names for form in _name_forms(name)]
        encodings = ("utf-8", "utf-16-le", "utf-16-be")
        return tuple({text.encode(encoding, "replace") for text in texts for encoding in encodings})

    def are_in_bytes(self, content: bytes) -> bool:
        """Whether bytes of any kind hold an id or a name as UTF-8 or UTF-16."""
        lowered = content.lower()
        return any(needle.lower() in lowered for needle in self._raw_needles)


def _id_pattern(student_id: str) -> str:
    body = "".join(_DIGITS.get(letter, re.escape(letter)) for letter in student_id)
    # shorter numbers occur in digests, among letters
    if student_id.isdecimal() and len(student_id) >= LONG_NUMBER:
        return rf"(?<!\d){body}(?!\d)"
    return rf"(?<![A-Za-z0-9]){body}(?![A-Za-z0-9])"


def _name_pattern(form: str) -> str:
    return rf"(?<![^\W_]){re.escape(form)}(?![^\W_])"


def _name_forms(name: str) -> Iterable[str]:
    """A name as LMSs, file names, JSON and HTML write it; none if it is too short to be one person's."""
    words = name.replace(",", " ").split()
    if len(words) < 2 and len(name.strip()) < SHORTEST_NAME:
        return ()
    orders: Collection[list[str]] = (
        [words] if len(words) < 2 else [words, words[-1:] + words[:-1], words[1:] + words[:1]]
    )
    forms = {separator.join(order) for order in orders for separator in (" ", "_", "-", ", ")}
    forms |= {"".join(order).lower() for order in orders}
    forms |= {f"{order[0]}, {' '.join(order[1:])}" for order in orders if len(order) > 1}
    # some systems write an accent as a character of its own
    forms |= {unicodedata.normalize(kind, form) for form in forms for kind in ("NFC", "NFD")}
    escaped = {variant for form in forms for variant in _escaped(form)}
    return {form for form in forms | escaped if len(form) >= SHORTEST_NAME or " " in form}


def _escaped(text: str) -> tuple[str, ...]:
    """A text as HTML has it, with the quotation marks of Python and of our own pages, and as JSON has it."""
    page = html.escape(text)
    return page, page.replace("&#x27;", "&#39;").replace("&quot;", "&#34;"), json.dumps(text)[1:-1]
