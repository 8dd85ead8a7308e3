"""The rubric and the forbidden parts of `assignment.toml`: every point has one source, every name exists."""

import re
from collections.abc import Sequence

from grader.course.assignment_tables import ForbiddenTable, RubricTable
from grader.course.breakpoints import breakpoints, threshold
from grader.course.contradictions import fault, require_different, require_file_name
from grader.course.toml_file import listing, remedy
from grader.domain.assignment import ForbiddenRule, RubricItem, RubricPart
from grader.domain.measure import SHARE, Measure


def rubric_items(
    tables: Sequence[RubricTable], components: Sequence[str], measures: Sequence[Measure], classes: int
) -> tuple[RubricItem, ...]:
    """The rubric.

    Args:
        tables: `[[rubric]]`.
        components: The names of all components.
        measures: All that is measured.
        classes: How many classes the data have: guessing gets one in so many.

    Raises:
        CourseError: Points do not add up, or an item has no source of points or two, or a component has
            no item or two, or an item is measured by what is not a measure.
    """
    require_different((table.id for table in tables), "rubric item", "Remove or rename one.")
    _require_one_owner(tables, components)
    by_id = {measure.id: measure for measure in measures}
    _require_measures(tables, list(by_id))
    return tuple(_item(table, by_id.get(table.measured or ""), classes) for table in tables)


def forbidden_rules(
    tables: Sequence[ForbiddenTable], items: Sequence[str], components: Sequence[str]
) -> tuple[ForbiddenRule, ...]:
    """The forbidden parts, one rule for each.

    Args:
        tables: `[[forbidden]]`.
        items: The ids of all rubric items.
        components: The names of all components.

    Raises:
        CourseError: A part is not a dotted name or is there twice, or what it costs does not exist.
    """
    parts = [part for table in tables for part in table.parts]
    require_different(parts, "the forbidden part", "Keep it in one [[forbidden]].")
    for part in parts:
        if not re.fullmatch(r"[A-Za-z_*?][\w*?]*(\.[\w*?]+)*", part):
            raise fault(
                f"the forbidden part '{part}' is not a dotted name such as 'torch.nn.Transformer*'. Fix it."
            )
    for table in tables:
        if table.costs not in (*items, *components):
            advice = remedy(
                table.costs, (*items, *components), f"There are {listing((*items, *components))}."
            )
            raise fault(
                f"the forbidden part '{table.parts[0]}' costs '{table.costs}', "
                f"which is neither a rubric item nor a component. {advice}"
            )
    return tuple(
        ForbiddenRule(part, table.policy, table.costs, table.reason)
        for table in tables
        for part in table.parts
    )


def _require_one_owner(tables: Sequence[RubricTable], components: Sequence[str]) -> None:
    owner: dict[str, str] = {}
    for table in tables:
        for name in table.components or ():
            if name not in components:
                advice = remedy(name, components, f"There are {listing(components)}.")
                raise fault(
                    f"rubric item '{table.id}' has points for '{name}', which is not a component. {advice}"
                )
            if name in owner:
                raise fault(
                    f"component '{name}' is in rubric items '{owner[name]}' and '{table.id}'. Remove one."
                )
            owner[name] = table.id
    for name in components:
        if name not in owner:
            raise fault(f"component '{name}' is in no rubric item. Give it points in a [rubric.components].")


def _item(table: RubricTable, measure: Measure | None, classes: int) -> RubricItem:
    require_file_name(table.id, "rubric item")
    _require_one_source(table)
    if table.components is not None:
        together = sum(table.components.values())
        if abs(together - table.points) > 1e-6:
            raise fault(
                f"rubric item '{table.id}' has {table.points:g} points "
                f"but its components add up to {together:g}. Change one of them."
            )
    return RubricItem(
        id=table.id,
        title=table.title,
        points=table.points,
        components=dict(table.components) if table.components is not None else None,
        measured=table.measured,
        breakpoints=breakpoints(table, measure, classes) if measure is not None else (),
        threshold=threshold(table, measure) if measure is not None else None,
        scale=measure.scale if measure is not None else SHARE,
        beside=tuple(table.beside),
        parts=_parts(table),
        study=table.by == "study",
    )


def _parts(table: RubricTable) -> tuple[RubricPart, ...]:
    if table.parts is None:
        return ()
    item = f"rubric item '{table.id}'"
    if table.by is None:
        raise fault(f"{item} has 'parts' but no person marks it. Remove them, or give it by = \"person\".")
    for part in table.parts:
        require_file_name(part.id, f"{item}: the part")
    require_different((part.id for part in table.parts), f"{item}: the part", "Remove or rename one.")
    together = sum(part.points for part in table.parts)
    if abs(together - table.points) > 1e-6:
        raise fault(
            f"{item} has {table.points:g} points but its parts add up to {together:g}. Change one of them."
        )
    return tuple(RubricPart(part.id, part.title, part.points) for part in table.parts)


def _require_measures(tables: Sequence[RubricTable], measures: Sequence[str]) -> None:
    for table in tables:
        if table.measured is not None and table.measured not in measures:
            raise fault(
                f"rubric item '{table.id}' is measured by '{table.measured}'. What is measured is "
                f"{listing(measures)}. Change it, or add a [[measure]]."
            )


def _require_one_source(table: RubricTable) -> None:
    item = f"rubric item '{table.id}'"
    sources = sum(source is not None for source in (table.components, table.measured, table.by))
    if sources != 1:
        wrong = "two sources of points" if sources else "nothing that its points come from"
        raise fault(
            f"{item} has {wrong}. Give it exactly one of [rubric.components], a measure "
            '(measured = "test_accuracy") and by = "person".'
        )
    for key, value in (("breakpoints", table.breakpoints), ("threshold", table.threshold)):
        if value is not None and table.measured is None:
            raise fault(f"{item} has '{key}' but is not measured. Remove it, or give it a measure.")
