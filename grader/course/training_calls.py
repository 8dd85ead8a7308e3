"""`[measure.call]` of `assignment.toml`: how a model is made, trained and asked by calls."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any

from grader.course.assignment_tables import StudyFileTable, TrainingCallTable
from grader.course.contradictions import fault
from grader.course.toml_file import listing, remedy
from grader.domain.assignment import Component
from grader.domain.measure import TrainingCall, placeholder_in
from grader.domain.study_table import StudyTable

PLACEHOLDERS = (
    *("{model}", "{inputs}", "{targets}", "{batches}"),
    *("{validation_inputs}", "{validation_targets}", "{validation_batches}", "{seed}", "{device}"),
)


def training_call(
    table: TrainingCallTable, where: str, components: Sequence[Component], *, columns: bool = False
) -> TrainingCall:
    """How a model is trained by a call.

    Args:
        where: Where it stands, for messages.
        columns: Other names in braces are allowed: columns of a table.

    Raises:
        CourseError: A name is not a component, an argument no parameter of it, or a placeholder none of ours.
    """
    stubs = {component.name: component for component in components}
    for key, name in (("model", table.model), ("function", table.function)):
        if name not in stubs:
            advice = remedy(name, list(stubs), f"There are {listing(list(stubs))}.")
            raise fault(f"{where}: {key} = '{name}' is not a component. {advice}")
    if stubs[table.function].kind != "function":
        raise fault(f"{where}: function = '{table.function}' is a class. Name the function that trains.")
    _require_parameters(f"{where}: arguments", table.arguments, stubs[table.model])
    _require_parameters(f"{where}: given", table.given, stubs[table.function])
    if not columns:
        _require_placeholders(f"{where}: arguments", table.arguments, ("{seed}",))
        _require_placeholders(f"{where}: given", table.given, PLACEHOLDERS)
    if not {"{inputs}", "{batches}"} & set(_texts(table.given)):
        raise fault(
            f"{where}: 'given' hands over no data. Give a parameter of {table.function} the text "
            "'{inputs}' or '{batches}'."
        )
    return TrainingCall(
        model=table.model,
        function=table.function,
        arguments=dict(table.arguments),
        given=dict(table.given),
        weights=table.weights or "",
        answers=table.answers or "",
        answers_with=dict(table.answers_with),
        batch_size=table.batch_size,
        tensors=table.data == "tensors",
        standardized=table.standardized,
        accepts=tuple(table.accepts),
    )


def study_table(table: StudyFileTable, components: Sequence[Component], roles: Sequence[str]) -> StudyTable:
    """How the rows of a study that is handed in are trained again.

    Args:
        roles: Of the files that the assignment names itself.

    Raises:
        CourseError: It contradicts what is trained or handed in.
    """
    if table.file not in roles:
        there = listing(list(roles)) if roles else "none"
        raise fault(f"[study]: file = '{table.file}' is not a role of [files] of your own; there is {there}.")
    call = training_call(table, "[study]", components, columns=True)
    texts = [text for text in _texts([call.arguments, call.given]) if text not in PLACEHOLDERS]
    found = [name for text in texts if (name := placeholder_in(text))]
    if not found:
        raise fault("[study]: no argument is a column of the table. Write one in braces, as '{depth}'.")
    return StudyTable(
        table.file, call, table.claimed, table.seed, table.size or "", tuple(dict.fromkeys(found)), table.rows
    )


def _require_parameters(where: str, given: Mapping[str, Any], stub: Component) -> None:
    arguments = ast.parse(f"def stub({stub.signature}): ...").body[0].args  # type: ignore[attr-defined]
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    for name in given:
        if name not in names:
            advice = remedy(name, names, f"It has {listing(names)}.")
            raise fault(f"{where}: '{name}' is not a parameter of {stub.name}({stub.signature}). {advice}")


def _require_placeholders(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for text in _texts(given):
        if placeholder_in(text) and text not in known:
            raise fault(f"{where}: '{text}' stands for nothing here. There is {listing(list(known))}.")


def _texts(value: Any) -> Iterator[str]:
    """All texts in nested tables and lists.

    Raises:
        CourseError: There is a date among them.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, date | time):
        raise fault(f"[measure.call]: {value} is a date, which no function is given. Write a text.")
