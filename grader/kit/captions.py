"""What texts in a figure say of classes: which ones, and whether these are the true or the predicted ones.

A text may name classes by their names, perhaps shortened, or by their numbers.
"""

import re
from collections.abc import Iterator, Sequence

TRUE = "true"
PREDICTED = "predicted"

# in the languages in which students of such courses label their figures
_TRUE_WORDS = "true|truth|actual|real|ground|gold|target|expected|wahr|tatsächlich|vrai|réel|واقعی"
_PREDICTED_WORDS = r"pred|guess|estimat|said|prognos|vorher|préd|hat\{|ŷ|yhat|پیش"
_LABEL_WORDS = "labels?|برچسب"
_ROLES = re.compile(
    rf"(?P<predicted>(?:{_PREDICTED_WORDS})[^\W_]*(?:\W+label\w*)?|\bp\b(?!\W?\s*\d*[.,]\d|\W?\s*\d+\s*%))"
    rf"|(?P<true>(?:{_TRUE_WORDS})[^\W_]*(?:\W+label\w*)?|\b(?:gt|t)\b)"
    rf"|(?P<label>\b(?:{_LABEL_WORDS})\b)"
)
_NUMBER = re.compile(r"\d+[.,]\d+|\d+\s*%|#\s*\d+|(?<![\w.])(?P<number>\d+)(?![\w.])")
_BEGINNING = 5  # letters that identify a name, even within a word


def plain(text: str) -> str:
    """Letters and digits only, lower case."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def class_of(text: str, class_names: Sequence[str]) -> int | None:
    """The class that a tick label names, perhaps shortened (`trick`, `tr`, `0: tricycle`); None if none.

    Only letters and digits count. A text that would match several classes names none.
    """
    plain_text = plain(text)
    names = [plain(name) for name in class_names]
    letters = plain_text.strip("0123456789") or plain_text
    for fits in (
        [name == plain_text for name in names],
        [len(name) > 2 and name in plain_text for name in names],
        [bool(letters) and name.startswith(letters) for name in names],
        [len(letters) > 1 and letters == _initials(name) for name in class_names],
        [len(letters) > 1 and _abbreviates(letters, name) for name in names],
    ):
        if any(fits):
            return fits.index(True) if sum(fits) == 1 else None
    return None


def _initials(name: str) -> str:
    """The first letter of each word."""
    return "".join(word[0] for word in re.split(r"[\W_]+", name.casefold()) if word)


def _abbreviates(letters: str, name: str) -> bool:
    """Whether the letters occur in the name in this order, the first at its beginning."""
    rest = iter(name)
    return name[:1] == letters[:1] and all(letter in rest for letter in letters)


def classes_named(text: str, class_names: Sequence[str]) -> list[int]:
    """The classes that a caption names, in order, by their names, perhaps shortened (`tricy`, `tri`)."""
    return [label for _, label in _names(text, class_names)]


def numbers_named(text: str, class_names: Sequence[str]) -> list[int]:
    """The classes that a caption names by their numbers, in order."""
    return [label for _, label in _numbers(text, class_names)]


def role(text: str) -> str | None:
    """Whether a text mentions the true or the predicted classes; None: neither, or both."""
    roles = set(_roles(text))
    return roles.pop() if len(roles) == 1 else None


def speaks_of_both(text: str) -> bool:
    """Whether a text mentions both true and predicted classes."""
    return len(set(_roles(text))) == 2


def stated(text: str, class_names: Sequence[str]) -> dict[str, int]:
    """What one text states explicitly: `true` and `predicted` -> class, if it says which is which.

    The words for the two roles and the names of classes are matched in their order.
    """
    mentions = list(_names(text, class_names))
    rest = text.casefold()
    for span, _ in mentions:
        rest = rest[: span[0]] + "\0" * (span[1] - span[0]) + rest[span[1] :]
    kinds = _roles(rest)
    mentions = mentions or list(_numbers(text, class_names))
    if len(kinds) != len(mentions) or len(set(kinds)) != len(kinds):
        return {}
    return {kind: label for kind, (_, label) in zip(kinds, mentions, strict=True)}


def _roles(text: str) -> list[str]:
    """The roles that a text mentions, in order; adjacent words for one role (`ground truth`) count once.

    `label` alone means the true class, unless another word beside it or for that role is clearer.
    """
    low = text.casefold().replace("_", " ")
    matches = list(_ROLES.finditer(low))
    truly = any(match.lastgroup == TRUE for match in matches)
    roles: list[str] = []
    for number, match in enumerate(matches):
        if match.lastgroup == "label":
            after = matches[number + 1].start() if number + 1 < len(matches) else len(low) + 1
            if truly or (after <= len(low) and not low[match.end() : after].strip(" \n\t([")):
                continue
        kind = PREDICTED if match.lastgroup == PREDICTED else TRUE
        if roles[-1:] != [kind]:
            roles.append(kind)
    return roles


def _names(text: str, class_names: Sequence[str]) -> Iterator[tuple[tuple[int, int], int]]:
    """(span, class) of each name in a text, in order."""
    names = [plain(name) for name in class_names]
    spans = [
        (match.start(), -match.end(), label)
        for label, name in enumerate(names)
        for match in re.finditer(_pattern(name, names), text.casefold())
    ]
    end = 0
    for start, negative_end, label in sorted(spans):
        if start >= end and start < -negative_end:
            end = -negative_end
            yield (start, end), label


def _pattern(name: str, names: Sequence[str]) -> str:
    """Matches a name, whole or cut after its fifth letter or later, with anything between its letters.

    A shorter beginning must be a separate word, and must not begin another name.
    """
    between = r"[\W_]*"
    start, rest = name[:_BEGINNING], name[_BEGINNING:]
    cut = [name[:length] for length in (4, 3) if length < len(name)]
    words = [word for word in cut if sum(other.startswith(word) for other in names) == 1]
    if len(name) >= _BEGINNING:
        longer = "".join(f"(?:{between}{letter}" for letter in rest) + ")?" * len(rest)
        return "|".join([between.join(start) + longer, *map(_word, words)])
    return "|".join(map(_word, [name, *words]))


def _word(letters: str) -> str:
    return rf"(?<![^\W_]){letters}(?![^\W_])"


def _numbers(text: str, class_names: Sequence[str]) -> Iterator[tuple[tuple[int, int], int]]:
    for match in _NUMBER.finditer(text):
        number = match.group("number")
        if number is not None and len(number) < 4 and int(number) < len(class_names):
            yield match.span(), int(number)
