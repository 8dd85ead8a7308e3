"""The measures of an assignment: which models are trained, how, and what is computed from their outputs.

It reads `[program]`, `[[measure]]`, `[measure.call]` and `[study]` of `assignment.toml`. It finds the
functions of `measures.py`: reading an assignment only parses that file, and `measure_function` executes it
for the measuring side. It trains nothing and gives no points.
"""

import ast
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

from grader.course.assignment_tables import MeasureTable, ProgramTable, StudyFileTable, TrainingCallTable
from grader.course.course_files import file_content
from grader.course.toml_file import fault, listing, remedy, require_different, require_file_name
from grader.domain.assignment import MEASUREMENTS, TEST_ACCURACY, Assignment, Component
from grader.domain.errors import CourseError
from grader.domain.measure import Measure, ProgramRoles, Scale, StudyTable, TrainingCall, placeholder_in

MEASURES_FILE = "measures.py"


def measures_file(folder: Path, *, public_only: bool) -> Path:
    """Where an assignment's functions are: beside its checks, or beside a student's homework."""
    return folder / MEASURES_FILE if public_only else folder / "checks" / MEASURES_FILE


def require_functions(folder: Path, measures: Sequence[Measure], *, public_only: bool) -> None:
    """Refuse measures by functions that do not exist; nothing is executed.

    Raises:
        CourseError: The file is missing, is not Python, or defines no such function.
    """
    custom = [measure for measure in measures if measure.function]
    if not custom:
        return
    path = measures_file(folder, public_only=public_only)
    if not path.is_file():
        raise fault(
            f"[[measure]] '{custom[0].id}' is computed by {custom[0].function}, and there is no {path.name} "
            f"in {path.parent.name}/. Write it there: def {custom[0].function}(outputs, targets)."
        )
    content = file_content(path, path.name)
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        raise CourseError(f"{path.name}: it is not Python ({error}). Fix it.") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for measure in custom:
        if measure.function not in defined:
            raise fault(
                f"[[measure]] '{measure.id}': {path.name} defines no function {measure.function}. Write it: "
                f"def {measure.function}(outputs, targets)."
            )


def measure_function(assignment: Assignment, measure: Measure) -> Callable[[Any, Any], Any]:
    """The function of a measure: (outputs (n, ...), targets (n, ...)) -> a number.

    Raises:
        CourseError: Its file cannot be executed.
    """
    path = measures_file(assignment.folder, public_only=assignment.public_only)
    spec = importlib.util.spec_from_file_location(f"_measures_of_{assignment.id}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise CourseError(
            f"{path.name}: executing it raised {type(error).__name__}: {text}. Fix it."
        ) from error
    function = getattr(module, measure.function, None)
    if not callable(function):
        raise CourseError(f"{path.name}: {measure.function} is not a function. Fix it.")
    return function  # type: ignore[no-any-return]


# --- training calls --------------------------------------------------------------------------------------


PLACEHOLDERS = (
    *("{model}", "{inputs}", "{targets}", "{batches}"),
    *("{validation_inputs}", "{validation_targets}", "{validation_batches}", "{seed}", "{device}"),
)


def training_call(
    table: TrainingCallTable, where: str, components: Sequence[Component], *, columns: bool = False
) -> TrainingCall:
    """How a model is trained by a call.

    Args:
        where: Where it stands in the file, for messages.
        columns: Other names in braces are allowed: columns of a table.

    Raises:
        CourseError: A name is not a component, an argument is not a parameter of it, one is left out
            that it needs, or a placeholder is unknown.
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
    if not columns:
        _require_complete(f"{where}: arguments", table.arguments, stubs[table.model])
        _require_complete(f"{where}: given", table.given, stubs[table.function])
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
    """How the rows of a submitted study are trained again.

    Args:
        roles: The roles that the assignment itself names.

    Raises:
        CourseError: It contradicts what is trained or handed in.
    """
    if table.file not in roles:
        choices = listing(list(roles)) if roles else "none"
        raise fault(
            f"[study]: file = '{table.file}' is not a role of [files] of your own; there is {choices}."
        )
    call = training_call(table, "[study]", components, columns=True)
    texts = [text for text in _texts([call.arguments, call.given]) if text not in PLACEHOLDERS]
    columns = [name for text in texts if (name := placeholder_in(text))]
    if not columns:
        raise fault("[study]: no argument is a column of the table. Write one in braces, as '{depth}'.")
    return StudyTable(
        table.file,
        call,
        table.claimed,
        table.seed,
        table.size or "",
        tuple(dict.fromkeys(columns)),
        table.rows,
    )


def _arguments(stub: Component) -> ast.arguments:
    """The parameters of a stub, as its signature writes them."""
    return ast.parse(f"def stub({stub.signature}): ...").body[0].args  # type: ignore[attr-defined,no-any-return]


def _require_complete(where: str, given: Mapping[str, Any], stub: Component) -> None:
    """Refuse a call that leaves out a parameter without a default: it would fail for every student."""
    arguments = _arguments(stub)
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[: len(positional) - len(arguments.defaults)]
    needed += [
        argument
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    for argument in needed:
        if argument.arg not in given:
            raise fault(
                f"{where}: '{argument.arg}' of {stub.name}({stub.signature}) has no default and gets no "
                "value. Add it."
            )


def _require_parameters(where: str, given: Mapping[str, Any], stub: Component) -> None:
    arguments = _arguments(stub)
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
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
        CourseError: One of the values is a date or a time.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from _texts(element)
    elif isinstance(value, list):
        for element in value:
            yield from _texts(element)
    elif isinstance(value, date | time):
        raise fault(f"[measure.call]: {value} is a date, which no function is given. Write a text.")


# --- measures --------------------------------------------------------------------------------------------


def measures(
    tables: Sequence[MeasureTable], program: ProgramTable, components: Sequence[Component]
) -> tuple[Measure, ...]:
    """The models that are trained and measured; one if the file names none.

    Args:
        tables: `[[measure]]`.
        program: `[program]`: the defaults for what a measure does not say.
        components: All components.

    Raises:
        CourseError: A role has a name that is not a component of its kind, or several measures cannot be
            distinguished.
    """
    defaults = program.model_dump(exclude_none=True)
    roles = _roles("[program]", defaults, components)
    if not tables:
        return (Measure(TEST_ACCURACY, roles=roles),)
    require_different((table.id for table in tables), "[[measure]]", "Remove or rename one.")
    all_measures = [_measure(table, defaults, components) for table in tables]
    if len(all_measures) > 1:
        _require_distinguishable(all_measures)
    return tuple(all_measures)


def _measure(table: MeasureTable, defaults: dict[str, str], components: Sequence[Component]) -> Measure:
    require_file_name(table.id, "[[measure]]")
    if table.id in MEASUREMENTS:
        raise fault(f"[[measure]] '{table.id}': the results have something else of that name. Rename it.")
    own_roles = table.model_dump(exclude_none=True, include=set(ProgramTable.model_fields))
    if table.weights is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", table.weights):
        raise fault(
            f"[[measure]] '{table.id}': weights = '{table.weights}' becomes part of a file's name. Use only "
            "letters, digits, '_' and '-'."
        )
    roles = _roles(f"[[measure]] '{table.id}'", {**defaults, **own_roles}, components)
    if table.function is None and table.better == "lower":
        raise fault(f"[[measure]] '{table.id}': of accuracies, higher is better. Remove 'better'.")
    if table.function is not None and not table.function.isidentifier():
        raise fault(f"[[measure]] '{table.id}': function = '{table.function}' is not a name. Change it.")
    call = (
        training_call(table.call, f"[[measure]] '{table.id}': call", components)
        if table.call is not None
        else None
    )
    unit = table.unit or ("percent" if table.function is None else "number")
    if table.function is None and unit == "number":
        raise fault(f"[[measure]] '{table.id}': accuracies are shares of one. Remove 'unit'.")
    scale = Scale(table.better == "lower", is_share=unit == "percent")
    return Measure(
        id=table.id,
        title=table.title or table.model or "",
        roles=roles,
        weights=table.weights or "",
        function=table.function or "",
        scale=scale,
        call=call,
        reference=table.reference,
        most_epochs=table.most_epochs,
        most_multiply_adds=table.most_multiply_adds,
        note=table.note or "",
    )


def _require_distinguishable(all_measures: Sequence[Measure]) -> None:
    replayed = [measure for measure in all_measures if measure.call is None]
    for measure in replayed if len(replayed) > 1 else ():
        for key, setting in (("model", measure.roles.model), ("weights", measure.weights)):
            if not setting:
                raise fault(
                    f"[[measure]] '{measure.id}' has no '{key}'. Each of several measures needs its own."
                )
    require_different(
        (measure.roles.model for measure in replayed), "[[measure]]: the model", "Measure it once."
    )
    for measure in replayed:
        others = (other for other in replayed if other is not measure)
        wider = next((other for other in others if measure.weights.lower() in other.weights.lower()), None)
        if wider is not None:
            raise fault(
                f"[[measure]] '{measure.id}': weights = '{measure.weights}' is also a part of "
                f"'{wider.weights}'. Choose parts of names that tell the files apart."
            )


def _roles(where: str, names_by_role: dict[str, str], components: Sequence[Component]) -> ProgramRoles:
    for key, kind in (("model", "class"), ("trainer", "function"), ("evaluator", "function")):
        names = [component.name for component in components if component.kind == kind]
        if key in names_by_role and names_by_role[key] not in names:
            raise fault(
                f"{where}: {key} = '{names_by_role[key]}' is not a component of kind {kind}. "
                f"There are: {', '.join(names)}."
            )
    if "final" in names_by_role and not names_by_role["final"].isidentifier():
        raise fault(f"{where}: final = '{names_by_role['final']}' is not the name of a variable. Change it.")
    return ProgramRoles(**names_by_role)
