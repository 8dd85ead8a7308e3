"""How a number, a time, a list or a hostile string is printed for people, in any medium."""

import math
from datetime import datetime, timedelta

from grader.domain.program import Place
from grader.domain.quoting import visible

UNKNOWN = "—"
SPACE = "\N{NO-BREAK SPACE}"


def printable(text: str) -> str:
    """The text with every character that would hide or reorder it shown by its number: see `visible`."""
    return visible(text)


def revealed(text: str) -> str:
    """The same for a listing of code, in which nothing is left out."""
    return visible(text, all_of_it=True)


def clipped(text: str, length: int = 600) -> str:
    """The text's first `length` characters, with a mark where something was cut off."""
    return text if len(text) <= length else text[:length].rstrip() + " …"


def within(place: Place, file: str) -> str:
    """A place for a reader who knows the file: `line 41`, or as it is elsewhere."""
    return f"line {place.line}" if place.file == file else printable(str(place))


def points(value: float | None) -> str:
    """Points with at most two decimals: `41.5`, `7`; a dash when nobody knows them yet."""
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
    """A whole number in groups of three (`499,462`), another one with three digits after the point."""
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
    """Words as a sentence lists them: `a, b and c`; beyond `limit`, how many more there are."""
    if len(words) > limit:
        return f"{', '.join(words[:limit])} and {len(words) - limit} more"
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
