"""Which names of a source stand for the parts that are graded, even if they are misspelled.

The model is the stated class, else the last graded one: the others are its parts. A name that is nearly the
same as a missing one is taken for it, and students are told. Nothing here reads what the code under a name
does, and nothing is executed.

Tests: tests/analysis/test_loading_statements.py
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.analysis.syntax_trees import DEFINITIONS, walk
from grader.analysis.units import Unit
from grader.domain.analyzed_program import NearName, Place
from grader.domain.assignment import Component, ProgramRules, trainers

FURTHEST = 2  # letters


def definitions(units: Sequence[Unit]) -> dict[str, tuple[Place, str]]:
    """Top-level name -> where it is bound last, and its kind: `class`, `function` or `value`."""
    places: dict[str, tuple[Place, str]] = {}
    for unit in units:
        kinds = {
            node.name: ("class" if isinstance(node, ast.ClassDef) else "function", node.lineno)
            for node in walk(unit.node)
            if isinstance(node, DEFINITIONS) and node.name in unit.binds
        }
        for name in unit.binds:
            kind, line = kinds.get(name, ("value", unit.line))
            places[name] = (unit.cell.place(line), kind)
    return places


def near_names(
    components: Sequence[Component], defined: Mapping[str, tuple[Place, str]]
) -> tuple[NearName, ...]:
    """For every graded name that is missing, the defined name that is nearly the same, if there is one.

    Nearly the same: it differs only in case and underscores, or by at most two letters (one in short names).
    """
    expected = {component.name for component in components}
    used_names: set[str] = set()
    pairs: list[tuple[int, int, str, str]] = []
    for order, component in enumerate(components):
        if component.name in defined:
            continue
        for name, (_, kind) in defined.items():
            if kind == component.kind and name not in expected:
                apart = distance(_squeezed(component.name), _squeezed(name))
                if apart <= min(FURTHEST, len(component.name) // 3):
                    pairs.append((apart, order, component.name, name))
    near_by_expected: dict[str, NearName] = {}
    for _, _, expected_name, name in sorted(pairs):
        if expected_name not in near_by_expected and name not in used_names:
            used_names.add(name)
            near_by_expected[expected_name] = NearName(expected_name, name, defined[name][0])
    return tuple(near_by_expected[c.name] for c in components if c.name in near_by_expected)


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


def distance(word: str, other: str) -> int:
    """How many letters must be added, dropped or changed (Levenshtein), counted up to `FURTHEST + 1`."""
    if abs(len(word) - len(other)) > FURTHEST:
        return FURTHEST + 1
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(word, start=1):
        current = [row]
        for column, other_letter in enumerate(other, start=1):
            change = previous[column - 1] + (letter != other_letter)
            current.append(min(change, previous[column] + 1, current[-1] + 1))
        previous = current
    return min(previous[-1], FURTHEST + 1)


@dataclass(frozen=True)
class GradedNames:
    """The names of a source that stand for what an assignment names.

    Attributes:
        defined: Every top-level name -> where it is bound last, and its kind.
        near: Graded names that are found under a slightly different name.
        found: Graded name -> the name in the source.
        kinds: Name in the source -> the kind of the part.
        model: The class of the model, as it is defined; None: there is none.
        trainer: The function that trains for an epoch, likewise.
        evaluators: The functions that may measure, likewise.
    """

    defined: Mapping[str, tuple[Place, str]]
    near: tuple[NearName, ...]
    found: Mapping[str, str]
    kinds: Mapping[str, str]
    model: str | None
    trainer: str | None
    evaluators: tuple[str, ...]


def graded_names(units: Sequence[Unit], rules: ProgramRules) -> GradedNames:
    """What stands for what the rules name."""
    components, stated = rules.components, rules.roles
    defined = definitions(units)
    near = near_names(components, defined)
    found = _found(components, defined, near)
    classes = [found[c.name] for c in components if c.kind == "class" and c.name in found]
    functions = [c.name for c in components if c.kind == "function"]
    return GradedNames(
        defined=defined,
        near=near,
        found=found,
        kinds={found[c.name]: c.kind for c in components if c.name in found},
        model=found.get(stated.model) or (classes[-1] if classes else None),
        trainer=next((found[name] for name in trainers(components, stated) if name in found), None),
        evaluators=tuple(
            found[name] for name in ([stated.evaluator] if stated.evaluator else functions) if name in found
        ),
    )


def _found(
    components: Sequence[Component], defined: Mapping[str, tuple[Place, str]], near: Sequence[NearName]
) -> dict[str, str]:
    """Graded name -> the name under which the source has it."""
    misspelled = {item.expected: item.found for item in near}
    return {
        component.name: misspelled.get(component.name, component.name)
        for component in components
        if component.name in defined or component.name in misspelled
    }
