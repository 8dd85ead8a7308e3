"""Formats numbers, times, lists and other people's words for people, in any medium.

Whatever a submission says (names, texts of exceptions, printed output, labels of axes, names of files)
enters a sentence only through the functions here: visible, short, and marked as somebody else's words. The
marks are part of the text, so that they are the same on a page, on a terminal, in JSON and in a table.
Nothing here translates a sentence or escapes it for HTML.
"""

import math
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta

from grader.domain.analyzed_program import Place

FIRST_YEAR, TOO_FAR = 1970, 9000  # Python's calendar ends soon after, and what is counted on needs a date
LONGEST = 80  # characters of somebody else's words within our sentence
MOST_MARKS = 2  # combining marks on one letter: an accent and a tone, a shadda and a vowel
OPEN, CLOSE, CODE = "“", "”", "`"

# Characters without a shape of their own (default-ignorable code points, format and control characters,
# surrogates), which hide, join or reorder their neighbors. Ordinary writing needs some of them: see
# `_replacement`.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U00013430-\U0001343f\U000e0000-\U000e0fff]"
)
_NON_JOINER, _JOINER = "\u200c", "\u200d"
_DIRECTIONS = "\u200e\u200f\u061c"
_PRESENTATION = "\ufe0e\ufe0f"  # shows the preceding sign as text, or as a picture
_FIRST_JOINING = "\u0590"  # scripts whose letters join, or take joiners, come after Latin, Greek and Cyrillic
_DOTTED_CIRCLE = "◌"

_NAME = re.compile(r"[^\W\d][\w*]*(?:\.[\w*]+)*")
_FILE_NAME = re.compile(r"[\w(\[+-][\w()\[\].+-]*")
_QUOTATION_ENDS = str.maketrans({OPEN: '"', CLOSE: '"'})  # so that a line of code cannot end a quotation
_MARKS_OF_OURS = str.maketrans(dict.fromkeys('"“”„‟«»″❝❞〝〞＂', "'"))


def visible(text: str, *, all_of_it: bool = False) -> str:
    """The text, in which characters that would hide, reorder or break it are shown by their numbers.

    What ordinary writing needs stays: the zero-width non-joiner after a letter (Persian has it in every
    second word), joiners there and in emoji, and two marks on a letter. Direction marks beside right-to-left
    letters and the style of an emoji are left out: the text reads the same without them.

    Args:
        text: Anything that a submission may have produced.
        all_of_it: Whether nothing is left out, as in a listing of code, where every character matters.

    Returns:
        Text that can be encoded as UTF-8; line ends are `\\n`.
    """
    if text.isascii() and text.isprintable():  # most of what is written, found out at a fraction of the cost
        return text
    text = text.replace("\r\n", "\n")
    shown = _HIDDEN.sub(lambda match: _replacement(text, match.start(), all_of_it), text)
    if not shown.isascii() and any(map(_is_mark, set(shown))):
        return _with_few_marks(shown)
    return shown


def quoted(text: str, longest: int = LONGEST) -> str:
    """Somebody else's words in quotation marks, on one line: `“mat1 and mat2 shapes cannot be multiplied”`.

    If it is too long, its beginning and its end are shown: in an exception's text, either may matter.
    """
    words = " ".join(visible(text).replace(CODE, "'").translate(_MARKS_OF_OURS).split())
    return f"{OPEN}{shortened(words, longest)}{CLOSE}"


@dataclass(frozen=True)
class Said:
    """A submission's words that crossed a process boundary: every sentence quotes them.

    Attributes:
        text: The raw text; for finding out what it means, never for a sentence.
    """

    text: str

    def __str__(self) -> str:
        return quoted(self.text)


def named(name: str, longest: int = LONGEST) -> str:
    """A name from a submission, as code if it is a Python name (`to_qkv.weight`), otherwise quoted."""
    if _NAME.fullmatch(name):
        return f"{CODE}{shortened(name, longest)}{CODE}"
    return quoted(name, longest)


def as_code(line: str, longest: int = LONGEST) -> str:
    """A line of a submission's source, as code."""
    words = " ".join(visible(line).replace(CODE, "'").translate(_QUOTATION_ENDS).split())
    return f"{CODE}{words if len(words) <= longest else words[: longest - 1].rstrip() + '…'}{CODE}"


def file_named(name: str) -> str:
    """The name of a handed-in file: unchanged if it is one word, otherwise quoted."""
    return name if _FILE_NAME.fullmatch(name) and len(name) <= LONGEST else quoted(name)


def file_name_of(name: str) -> str:
    """The name of a handed-in file in places (`homework.py:41`), as one word."""
    stem, dot, suffix = name.rpartition(".")
    word = re.sub(r"[^\w()\[\].+-]+", "_", f"{stem[: LONGEST - 1 - len(suffix)]}{dot}{suffix}")
    return name if file_named(name) == name else word[:LONGEST]


def about_file(name: str, reason: str) -> str:
    """The reason for what became of a handed-in file, which begins with the file's safe name.

    Args:
        name: With its folders, if there are any.
        reason: A sentence that may begin with the name.
    """
    for known in (name, name.rpartition("/")[2]):
        if known and reason.startswith(known):
            return file_named(known) + reason.removeprefix(known)
    return f"{file_named(name)}: {reason}" if reason else ""


def shortened(text: str, longest: int) -> str:
    """The beginning and the end of a text, with a mark where something was cut out."""
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[: longest - 3 - half].rstrip()} … {text[-half:].lstrip()}"


def _replacement(text: str, index: int, all_of_it: bool) -> str:
    """What is shown for a character without a shape: the character itself, nothing, or its number."""
    letter, before, after = text[index], text[index - 1 : index], text[index + 1 : index + 2]
    joins = before >= _FIRST_JOINING and unicodedata.category(before)[0] in "LM"
    if letter == _NON_JOINER and joins:
        return letter
    if letter == _JOINER and (joins or (_is_sign(before) and _is_sign(after))):
        return letter
    if (
        not all_of_it
        and letter in _DIRECTIONS
        and any(map(_is_from_right, text[max(index - 2, 0) : index + 3]))
    ):
        return ""
    if not all_of_it and letter in _PRESENTATION and (_is_sign(before) or after == "\u20e3"):
        return ""
    return f"⟨U+{ord(letter):04X}⟩"


def _is_from_right(letter: str) -> bool:
    """Whether a character is written from right to left, and is not just a direction mark."""
    return unicodedata.bidirectional(letter) in ("R", "AL") and letter not in _DIRECTIONS


def _is_sign(letter: str) -> bool:
    """Whether a character can be a part of an emoji."""
    return letter != "" and (unicodedata.category(letter) in ("So", "Sk") or letter in _PRESENTATION)


def _is_mark(letter: str) -> bool:
    """Whether a character combines with the one before it."""
    return unicodedata.category(letter) in ("Mn", "Me")


def _with_few_marks(text: str) -> str:
    """The text with at most MOST_MARKS on a letter, and the number of further ones."""
    pieces: list[str] = []
    marks = 0
    for letter in text:
        if not _is_mark(letter):
            pieces.append(_further_marks(marks) + letter)
            marks = 0
            continue
        if marks == 0 and (not pieces or pieces[-1].isspace()):
            pieces.append(_DOTTED_CIRCLE)  # a mark must not combine with what precedes the text
        if marks < MOST_MARKS:
            pieces.append(letter)
        marks += 1
    return "".join(pieces) + _further_marks(marks)


def _further_marks(marks: int) -> str:
    return f"⟨{marks - MOST_MARKS} more marks⟩" if marks > MOST_MARKS else ""


# --- formatting ------------------------------------------------------------------------------------------


UNKNOWN = "—"
SPACE = "\N{NO-BREAK SPACE}"


def printable(text: str) -> str:
    """The text, in which characters that would hide or reorder it are shown by numbers: see `visible`."""
    return visible(text)


def revealed(text: str) -> str:
    """The text for a listing of code, in which nothing is left out: see `visible`."""
    return visible(text, all_of_it=True)


def clipped(text: str, length: int = 600) -> str:
    """The text's first `length` characters, with a mark where something was cut off."""
    return text if len(text) <= length else text[:length].rstrip() + " …"


def within(place: Place, file: str) -> str:
    """A place for a reader who knows the file: `line 41`; in another file, with its name."""
    return f"line {place.line}" if place.file == file else printable(str(place))


def points(value: float | None) -> str:
    """Points with at most two decimals: `41.5`, `7`; a dash if they are not known yet."""
    if value is None:
        return UNKNOWN
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def percent(share: float | None, digits: int = 1) -> str:
    """A share of 0 to 1 in percent: `55.2 %`."""
    if share is None:
        return UNKNOWN
    return f"{100 * share:.{digits}f}{SPACE}%" if math.isfinite(share) else "not a number"


def round_percent(share: float) -> str:
    """A share of 0 to 1 in percent without needless decimals: `60 %`, `16.7 %`."""
    return f"{points(round(100 * share, 1))}{SPACE}%"


def quantity(value: float | None) -> str:
    """A whole number with digits in groups of three (`499,462`), any other with three decimals."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return "not finite"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if 0.001 <= abs(value) < 10_000 or value == 0 else f"{value:.2e}"


def duration(seconds: float) -> str:
    """Seconds as a person says them: `0.4 s`, `2 min 11 s`, `1 h 02 min`."""
    if seconds < 60:
        return f"{seconds:.1f}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{SPACE}min {rest:02d}{SPACE}s"
    return f"{minutes // 60}{SPACE}h {minutes % 60:02d}{SPACE}min"


def moment_problem(moment: datetime, what: str) -> str:
    """What is wrong with a moment, in a sentence: it has no time zone, or lies beyond the calendar.

    Args:
        what: The beginning of the sentence: `the deadline`.

    Returns:
        It is empty if nothing is wrong.
    """
    if moment.utcoffset() is None:
        return f"{what} has no time zone. Write it as in {moment.isoformat()}+03:30."
    if not FIRST_YEAR <= moment.year < TOO_FAR:
        return f"{what} is too far away. Write a date from the year {FIRST_YEAR} to before {TOO_FAR}."
    return ""


def stamp(moment: datetime | None) -> str:
    """A moment as `2026-11-20 14:05 UTC`, in its own time zone, independent of the machine's language."""
    if moment is None:
        return UNKNOWN
    offset = moment.utcoffset()
    if offset is None:
        return f"{moment:%Y-%m-%d %H:%M}"
    if offset == timedelta(0):
        return f"{moment:%Y-%m-%d %H:%M} UTC"
    zone = f"{moment:%z}"
    return f"{moment:%Y-%m-%d %H:%M} UTC{zone[:3]}:{zone[3:5]}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 check`, `3 checks`, `2 students`."""
    return f"{number}{SPACE}{noun if number == 1 else plural or noun + 's'}"


def listed(words: tuple[str, ...] | list[str], limit: int = 6) -> str:
    """Words as a sentence lists them: `a, b and c`; beyond `limit`, the number of further ones."""
    if len(words) > limit:
        return f"{', '.join(words[:limit])} and {len(words) - limit} more"
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
