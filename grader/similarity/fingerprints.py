"""Winnowing: of all stretches of a row of tokens, few that are chosen alike wherever a stretch occurs.

Schleimer, Wilkerson, Aiken: Winnowing: Local Algorithms for Document Fingerprinting, SIGMOD 2003. Two rows
that share WINDOW + STRETCH - 1 tokens in a row share a fingerprint; less than STRETCH tokens are not found.

Written out here, because no library fits: copydetect 0.5 and compare50 1.2 hash with Python's `hash`, which
is another in every process, so that the same class would have other scores on every run; compare50 is also
under the GPL and needs an attrs of before 2021, and copydetect has had no release since March 2024.
"""

from collections.abc import Sequence
from hashlib import blake2b

STRETCH = 16  # tokens: the paper's k
WINDOW = 4  # stretches: the paper's w


def fingerprints(row: Sequence[str], stretch: int = STRETCH, window: int = WINDOW) -> list[tuple[int, int]]:
    """The fingerprints of a row as (value, where its stretch begins), in order.

    Args:
        row: Tokens.
        stretch: The length of what is compared, in tokens.
        window: Of so many neighboring stretches at least one is chosen.
    """
    values = [_value(row[start : start + stretch]) for start in range(len(row) - stretch + 1)]
    chosen: list[tuple[int, int]] = []
    for start in range(max(len(values) - window + 1, min(len(values), 1))):
        part = range(start, min(start + window, len(values)))
        # the smallest, of equal ones the rightmost: neighboring windows then agree as often as they can
        at = min(part, key=lambda index: (values[index], -index))
        if not chosen or chosen[-1][1] != at:
            chosen.append((values[at], at))
    return chosen


def _value(stretch: Sequence[str]) -> int:
    # of 64 bits, and the same in every process, as Python's own hash is not
    return int.from_bytes(
        blake2b("\0".join(stretch).encode("utf-8", "replace"), digest_size=8).digest(), "big"
    )
