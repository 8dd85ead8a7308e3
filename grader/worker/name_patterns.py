"""Which names match the patterns of forbidden parts, without an expression for each of a hundred patterns.

Most patterns have no wildcard, or end in their only asterisk. A worker is made for every few checks, and
forgets what it compiled: that took a third of its time. `audit_hook` and `forbidden_watch` ask here.

Tests: tests/worker/test_name_patterns.py, tests/worker/test_watch.py
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

WILDCARDS = frozenset("*?[")
NEVER = re.compile(r"(?!)").match


@dataclass(frozen=True)
class Inside:
    """What dotted names match one of some patterns, or are inside what matches.

    Attributes:
        names: These names do.
        starts: So do names that begin so.
        matches: For others: whether an expression matches.
    """

    names: frozenset[str]
    starts: tuple[str, ...]
    matches: Any


def inside(patterns: Sequence[str]) -> Inside:
    """What matches `timm` or is inside it: `timm`, `timm.data`, but not `timmy`; patterns as in `fnmatch`."""
    names: list[str] = []
    starts: list[str] = []
    others: list[str] = []
    for pattern in patterns:
        if _is_plain(pattern):
            names.append(pattern)
            starts.append(f"{pattern}.")
        elif _is_start(pattern):
            starts.append(pattern[:-1])
        else:
            others += [translate(pattern), translate(f"{pattern}.*")]
    return Inside(frozenset(names), tuple(starts), re.compile("|".join(others)).match if others else NEVER)


def matching(names: Collection[str], pattern: str) -> list[str]:
    """Those of some names that match a pattern, in their order; as `fnmatch.fnmatchcase`.

    What is no text does not: it may be put among a module's names.
    """
    if _is_plain(pattern):
        return [pattern] if pattern in names else []
    if _is_start(pattern):
        start = pattern[:-1]
        return [name for name in names if isinstance(name, str) and str.startswith(name, start)]
    matches = re.compile(translate(pattern)).match
    return [name for name in names if isinstance(name, str) and matches(name)]


def _is_plain(pattern: str) -> bool:
    return WILDCARDS.isdisjoint(pattern)


def _is_start(pattern: str) -> bool:
    return pattern.endswith("*") and _is_plain(pattern[:-1])
