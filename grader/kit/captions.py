"""What the texts of a figure say: which classes they name, and which is the true one."""

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
_BEGINNING = 5  # letters that tell a name, also within a word


def plain(text: str) -> str:
    """Letters and digits only, lower case."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def class_of(text: str, class_names: Sequence[str]) -> int | None:
    """The class that a tick label names, perhaps shortened (`trick`, `tr`, `0: tricycle`); None if none.

    Only letters and digits count. What would match several classes names none.
    """
    said = plain(text)
    names = [plain(name) for name in class_names]
    letters = said.strip("0123456789") or said
    for fits in (
        [name == said for name in names],
        [len(name) > 2 and name in said for name in names],
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
    """Whether the letters stand in the name in this order, the first at its beginning."""
    rest = iter(name)
    return name[:1] == letters[:1] and all(letter in rest for letter in letters)


def classes_named(text: str, class_names: Sequence[str]) -> list[int]:
    """The classes that a caption names, in order, by their names, perhaps cut (`tricy`, `tri`)."""
    return [label for _, label in _names(text, class_names)]


def numbers_named(text: str, class_names: Sequence[str]) -> list[int]:
    """The classes that a caption names by their numbers, in order."""
    return [label for _, label in _numbers(text, class_names)]


def role(text: str) -> str | None:
    """Whether a text speaks of the true or of the predicted classes; None: of neither, or of both."""
    found = set(_roles(text))
    return found.pop() if len(found) == 1 else None


def speaks_of_both(text: str) -> bool:
    """Whether a text speaks of true and of predicted classes."""
    return len(set(_roles(text))) == 2


def stated(text: str, class_names: Sequence[str]) -> dict[str, int]:
    """What one text says outright: `true` and `predicted` -> class, where it says which is which.

    The words for the two roles and the names of classes are matched in their order.
    """
    found = list(_names(text, class_names))
    rest = text.casefold()
    for span, _ in found:
        rest = rest[: span[0]] + "\0" * (span[1] - span[0]) + rest[span[1] :]
    kinds = _roles(rest)
    found = found or list(_numbers(text, class_names))
    if len(kinds) != len(found) or len(set(kinds)) != len(kinds):
        return {}
    return {kind: label for kind, (_, label) in zip(kinds, found, strict=True)}


def _roles(text: str) -> list[str]:
    """The roles that a text speaks of, in order; one that goes on (`ground truth`) once.

    `label` alone means the true one, unless another word beside it or for that role says more.
    """
    low = text.casefold().replace("_", " ")
    matches = list(_ROLES.finditer(low))
    truly = any(match.lastgroup == TRUE for match in matches)
    found: list[str] = []
    for number, match in enumerate(matches):
        if match.lastgroup == "label":
            after = matches[number + 1].start() if number + 1 < len(matches) else len(low) + 1
            if truly or (after <= len(low) and not low[match.end() : after].strip(" \n\t([")):
                continue
        kind = PREDICTED if match.lastgroup == PREDICTED else TRUE
        if found[-1:] != [kind]:
            found.append(kind)
    return found


def _names(text: str, class_names: Sequence[str]) -> Iterator[tuple[tuple[int, int], int]]:
    """(span, class) of each name in a text, in order."""
    names = [plain(name) for name in class_names]
    found = [
        (match.start(), -match.end(), label)
        for label, name in enumerate(names)
        for match in re.finditer(_pattern(name, names), text.casefold())
    ]
    end = 0
    for start, negative_end, label in sorted(found):
        if start >= end and start < -negative_end:
            end = -negative_end
            yield (start, end), label


def _pattern(name: str, names: Sequence[str]) -> str:
    """Matches a name whatever stands between its letters, whole or from its fifth letter on cut.

    A shorter beginning must be a word of its own, and be no other name's beginning.
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
