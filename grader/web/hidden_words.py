"""Hides the ids and names of those who handed something in, however they are written.

A word is found in any case, with or without accents, in other forms of its letters (Arabic and Persian ones,
ligatures, those of a wide font) and with digits of any script. It never decides which words are hidden
(`shown_work` does).
"""

import functools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from html import unescape

from markupsafe import escape

HIDDEN = "▒▒▒"
_TAG = re.compile(r"(<[^>]*>)")
_LABEL = re.compile(r'(?<= aria-label=")[^"]*')
_LETTER = r"[^\W\d_]"
_BETWEEN = re.compile(r"[\W_]*")
_SAME_LETTER = {"ي": "ی", "ك": "ک"}
_NO_LETTERS = frozenset(("Mn", "Cf"))  # marks on a letter, and joiners
_KASHIDA = "ـ"


@dataclass(frozen=True)
class HiddenWords:
    """Words that are to be hidden.

    Attributes:
        pattern: Finds them in a folded text; None: there are none.
    """

    pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, words: Iterable[str]) -> "HiddenWords":
        """Some words.

        Args:
            words: Those with digits are hidden also within longer words, others as whole words. Of a name of
                several words, any signs or none may stand between them.
        """
        patterns = {_pattern(_folded(word)[0]) for word in words} - {""}
        longest_first = sorted(patterns, key=lambda pattern: (-len(pattern), pattern))
        return cls(re.compile("|".join(longest_first)) if patterns else None)

    def in_text(self, text: str) -> str:
        """A text in which they are hidden."""
        if self.pattern is None:
            return text
        folded, places = _folded(text)
        pieces, end = [], 0
        for found in self.pattern.finditer(folded):
            pieces += [text[end : places[found.start()]], HIDDEN]
            end = max(places[found.end()], places[found.end() - 1] + 1)
        return "".join((*pieces, text[end:]))

    def in_html(self, html: str) -> str:
        """HTML in which they are hidden, in text and in labels, but not in pictures and addresses."""
        if self.pattern is None:
            return html
        pieces = _TAG.split(html)
        for index, piece in enumerate(pieces):
            if index % 2 == 0:
                pieces[index] = self._in_escaped(piece)
            elif 'aria-label="' in piece and "data:" not in piece:
                pieces[index] = _LABEL.sub(lambda label: self._in_escaped(label[0]), piece)
        return "".join(pieces)

    def _in_escaped(self, text: str) -> str:
        plain = unescape(text)
        shown = self.in_text(plain)
        return text if shown == plain else str(escape(shown))


def _pattern(word: str) -> str:
    """What finds a folded word; empty if it has neither letters nor digits."""
    if any(map(str.isdigit, word)):
        return re.escape(word)
    parts = _BETWEEN.pattern.join(part for part in _BETWEEN.split(word) if part)
    return f"(?<!{_LETTER}){parts}(?!{_LETTER})" if parts else ""


def _folded(text: str) -> tuple[str, list[int] | range]:
    """A text in which letters that are read alike are the same, and where in the text each of its letters is.

    The places have the text's length at their end.
    """
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        alike = _alike(letter)
        letters.append(alike)
        places += [place] * len(alike)
    return "".join(letters), [*places, len(text)]


@functools.lru_cache(maxsize=4096)
def _alike(letter: str) -> str:
    """The letters that a letter is read as; none for what only changes another one."""
    if letter == _KASHIDA:
        return ""
    digit = unicodedata.decimal(letter, None)
    if digit is not None:
        return str(digit)
    parts = unicodedata.normalize("NFKD", letter).casefold()
    return "".join(
        _SAME_LETTER.get(part, part) for part in parts if unicodedata.category(part) not in _NO_LETTERS
    )
