"""`[program]` and `[[measure]]` of `assignment.toml`: which models are trained and measured."""

import re
from collections.abc import Sequence

from grader.course.assignment_tables import MeasureTable, ProgramTable
from grader.course.contradictions import fault, require_different, require_file_name
from grader.course.training_calls import training_call
from grader.domain.assignment import MEASUREMENTS, TEST_ACCURACY, Component
from grader.domain.measure import Measure, ProgramRoles, Scale


def measures(
    tables: Sequence[MeasureTable], program: ProgramTable, components: Sequence[Component]
) -> tuple[Measure, ...]:
    """The models that are trained and measured; one, where the file names none.

    Args:
        tables: `[[measure]]`.
        program: `[program]`: what holds where a measure does not say it.
        components: All components.

    Raises:
        CourseError: A role has a name that is not a component of its kind, or several measures cannot be told
            apart.
    """
    stated = program.model_dump(exclude_none=True)
    roles = _roles("[program]", stated, components)
    if not tables:
        return (Measure(TEST_ACCURACY, roles=roles),)
    require_different((table.id for table in tables), "[[measure]]", "Remove or rename one.")
    found = [_measure(table, stated, components) for table in tables]
    if len(found) > 1:
        _require_told_apart(found)
    return tuple(found)


def _measure(table: MeasureTable, stated: dict[str, str], components: Sequence[Component]) -> Measure:
    require_file_name(table.id, "[[measure]]")
    if table.id in MEASUREMENTS:
        raise fault(f"[[measure]] '{table.id}': the results have something else of that name. Rename it.")
    own = table.model_dump(exclude_none=True, include=set(ProgramTable.model_fields))
    if table.weights is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", table.weights):
        raise fault(
            f"[[measure]] '{table.id}': weights = '{table.weights}' becomes part of a file's name. Use only "
            "letters, digits, '_' and '-'."
        )
    roles = _roles(f"[[measure]] '{table.id}'", {**stated, **own}, components)
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


def _require_told_apart(found: Sequence[Measure]) -> None:
    replayed = [each for each in found if each.call is None]
    for each in replayed if len(replayed) > 1 else ():
        for key, own in (("model", each.roles.model), ("weights", each.weights)):
            if not own:
                raise fault(
                    f"[[measure]] '{each.id}' has no '{key}'. Each of several measures needs its own."
                )
    require_different((each.roles.model for each in replayed), "[[measure]]: the model", "Measure it once.")
    for each in replayed:
        others = (other for other in replayed if other is not each)
        wider = next((other for other in others if each.weights.lower() in other.weights.lower()), None)
        if wider is not None:
            raise fault(
                f"[[measure]] '{each.id}': weights = '{each.weights}' is also a part of '{wider.weights}'. "
                "Choose parts of names that tell the files apart."
            )


def _roles(where: str, stated: dict[str, str], components: Sequence[Component]) -> ProgramRoles:
    for key, kind in (("model", "class"), ("trainer", "function"), ("evaluator", "function")):
        names = [component.name for component in components if component.kind == kind]
        if key in stated and stated[key] not in names:
            raise fault(
                f"{where}: {key} = '{stated[key]}' is not a component of kind {kind}. "
                f"There are: {', '.join(names)}."
            )
    if "final" in stated and not stated["final"].isidentifier():
        raise fault(f"{where}: final = '{stated['final']}' is not the name of a variable. Change it.")
    return ProgramRoles(**stated)
