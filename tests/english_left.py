"""What stays English of what a report says in another language."""

import re
from collections.abc import Iterator
from typing import Any

from grader.language.translation import BEGIN, END, Language

_CODE = re.compile(r"`[^`]*`|“[^”]*”|In \[\d+\], line \d+( \(cell \d+\))?")
_WORD = re.compile(r"(?<![\w.])[a-z]{2,}(?![\w.(=])")
_TELLING = {"the", "is", "of", "it"}
# what others wrote, and what a page shows as it is: code, names and settings of this machine
OTHERS_WORDS = {"source", "code", "text", "answer", "comment", "outputs", "title", "environment", "sandbox"}


def english_left(text: str, language: Language) -> list[str]:
    """The parts of a text that read as English prose after it was translated; names and code do not."""
    left = []
    for piece in language.pieces(text):
        prose = _CODE.sub(" ", piece.text)
        parts = re.findall(f"{BEGIN}([^{END}]*){END}", prose) if piece.translated else [prose]
        left += [part for part in parts if _is_prose(part)]
    return left


def _is_prose(part: str) -> bool:
    words = _WORD.findall(part)
    return len(words) > 1 or not _TELLING.isdisjoint(words)


def sentences_of(document: Any) -> Iterator[str]:
    """All texts of a result's record that are of several words, except what others wrote."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key not in OTHERS_WORDS:
                yield from sentences_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from sentences_of(value)
    elif isinstance(document, str) and " " in document:
        yield document
