"""Misspelled graded names: a defined name that is nearly the missing one.

A heuristic over names: same kind, and equal but for case and underscores, or at most two letters apart. A
helper with such a name is taken for the part. Then the checks judge it, and the student reads which name was
taken. Where no name is near, the part counts as missing. Points are decided by the checks, never here.

Tests: tests/analysis/test_loading_statements.py
"""

import ast
from collections.abc import Mapping, Sequence

from grader.analysis.units import DEFINITIONS, Unit
from grader.domain.assignment import Component
from grader.domain.program import NearName, Place

FURTHEST = 2


def definitions(units: Sequence[Unit]) -> dict[str, tuple[Place, str]]:
    """Top-level name -> where it is bound last, and as what: `class`, `function` or `value`."""
    found: dict[str, tuple[Place, str]] = {}
    for unit in units:
        kinds = {
            node.name: ("class" if isinstance(node, ast.ClassDef) else "function", node.lineno)
            for node in ast.walk(unit.node)
            if isinstance(node, DEFINITIONS) and node.name in unit.binds
        }
        for name in unit.binds:
            kind, line = kinds.get(name, ("value", unit.line))
            found[name] = (unit.cell.place(line), kind)
    return found


def near_names(
    components: Sequence[Component], defined: Mapping[str, tuple[Place, str]]
) -> tuple[NearName, ...]:
    """For every graded name that is missing, the defined name that is nearly it, if there is one.

    Nearly is: the same but for case and underscores, or at most two letters apart (one in short names).
    """
    expected = {component.name for component in components}
    taken: set[str] = set()
    pairs: list[tuple[int, int, str, str]] = []
    for order, component in enumerate(components):
        if component.name in defined:
            continue
        for name, (_, kind) in defined.items():
            if kind == component.kind and name not in expected:
                apart = distance(_squeezed(component.name), _squeezed(name))
                if apart <= min(FURTHEST, len(component.name) // 3):
                    pairs.append((apart, order, component.name, name))
    found: dict[str, NearName] = {}
    for _, _, wanted, name in sorted(pairs):
        if wanted not in found and name not in taken:
            taken.add(name)
            found[wanted] = NearName(wanted, name, defined[name][0])
    return tuple(found[c.name] for c in components if c.name in found)


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


def distance(first: str, second: str) -> int:
    """How many letters must be added, dropped or changed (Levenshtein), counted up to `FURTHEST + 1`."""
    if abs(len(first) - len(second)) > FURTHEST:
        return FURTHEST + 1
    previous = list(range(len(second) + 1))
    for row, left in enumerate(first, start=1):
        current = [row]
        for column, right in enumerate(second, start=1):
            change = previous[column - 1] + (left != right)
            current.append(min(change, previous[column] + 1, current[-1] + 1))
        previous = current
    return min(previous[-1], FURTHEST + 1)
