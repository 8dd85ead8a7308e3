"""The rubric of an assignment: items, breakpoints, and what students learn about hidden checks.

It reads the rubric, the forbidden parts and the breakpoints of `assignment.toml`, and refuses
contradictions: every point has one source, and every name exists. It also writes and reads what a
student's copy says about the checks that it lacks: which part each of them judges, and its weight. It
never scores a submission.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise

from grader.course.assignment_tables import ForbiddenTable, HiddenCheckTable, RubricTable
from grader.course.toml_file import fault, listing, remedy, require_different, require_file_name
from grader.domain.assignment import (
    SUBMISSION,
    CheckSpec,
    HiddenCheck,
    RubricItem,
    RubricPart,
)
from grader.domain.assignment_rules import ForbiddenRule
from grader.domain.measure import SHARE, Measure

CHANCE = "chance"
_OF_REFERENCE = re.compile(r"(\d+(?:\.\d+)?)\s*% of reference")


def breakpoints(table: RubricTable, measure: Measure, classes: int) -> tuple[tuple[float, float], ...]:
    """(value, points) in ascending order of the values.

    Args:
        measure: What the item is measured by.
        classes: How many classes the data have: guessing gets one in so many.

    Raises:
        CourseError: They are not in order, or give other points than the item has.
    """
    item, lower = f"rubric item '{table.id}'", measure.scale.lower_is_better
    if not table.breakpoints:
        ends = (
            f"[{{ at = 1.5, points = {table.points:g} }}, {{ at = 3.0, points = 0 }}]"
            if lower
            else f'[{{ at = "{CHANCE}", points = 0 }}, {{ at = 0.8, points = {table.points:g} }}]'
        )
        raise fault(f"{item} is measured but has no breakpoints. Add breakpoints = {ends}.")
    value_points = tuple(
        (_value(entry.at, item, measure, classes), entry.points) for entry in table.breakpoints
    )
    for (lesser, before), (greater, after) in pairwise(value_points):
        if greater <= lesser:
            raise fault(
                f"{item}: the breakpoint at {greater:g} comes after {lesser:g}. Put them in ascending order."
            )
        if after < before if not lower else after > before:
            raise fault(
                f"{item}: the breakpoint at {greater:g} gives {after:g} points, "
                f"{'more' if lower else 'fewer'} than the {before:g} before it. Change one of them."
            )
    outermost, most = ("first", value_points[0][1]) if lower else ("last", value_points[-1][1])
    if most != table.points:
        raise fault(
            f"{item} has {table.points:g} points but its {outermost} breakpoint gives {most:g}. "
            "Change one of them."
        )
    return value_points


def threshold(table: RubricTable, measure: Measure) -> float | None:
    """The value that an item asks for.

    Raises:
        CourseError: It cannot be a value of the measure.
    """
    if table.threshold is not None and not measure.scale.is_value(table.threshold):
        raise fault(
            f"rubric item '{table.id}': threshold = {table.threshold:g} is not a share. Write a number from "
            "0 to 1."
        )
    return table.threshold


def _value(at: object, item: str, measure: Measure, classes: int) -> float:
    if at == CHANCE and classes and measure.scale.is_share:
        return 1 / classes
    if isinstance(at, str) and (share := _OF_REFERENCE.fullmatch(at)):
        if measure.reference is None:
            raise fault(
                f"{item} has a breakpoint at '{at}', but [[measure]] '{measure.id}' has no 'reference'. "
                "Write there what the reference reaches."
            )
        return float(share[1]) / 100 * measure.reference
    if isinstance(at, int | float) and not isinstance(at, bool) and measure.scale.is_value(float(at)):
        return float(at)
    number = "a number from 0 to 1" if measure.scale.is_share else "a number"
    chance = f'"{CHANCE}" for what guessing gets, ' if measure.scale.is_share and classes else ""
    raise fault(
        f"{item} has a breakpoint at '{at}'. Write {number}, {chance}or \"95 % of reference\" for a share of "
        "what the reference reaches."
    )


# --- rubric ----------------------------------------------------------------------------------------------


def rubric_items(
    tables: Sequence[RubricTable], components: Sequence[str], measures: Sequence[Measure], classes: int
) -> tuple[RubricItem, ...]:
    """The rubric.

    Args:
        tables: `[[rubric]]`.
        components: The names of all components.
        measures: All measures.
        classes: How many classes the data have: guessing gets one in so many.

    Raises:
        CourseError: Points do not add up, an item does not have exactly one source of points, a component
            is not in exactly one item, or an item is measured by something that is not a measure.
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
        CourseError: A part is not a dotted name or occurs twice, or what it costs does not exist.
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
    items: dict[str, str] = {}
    for table in tables:
        for name in table.components or ():
            if name not in components:
                advice = remedy(name, components, f"There are {listing(components)}.")
                raise fault(
                    f"rubric item '{table.id}' has points for '{name}', which is not a component. {advice}"
                )
            if name in items:
                raise fault(
                    f"component '{name}' is in rubric items '{items[name]}' and '{table.id}'. Remove one."
                )
            items[name] = table.id
    for name in components:
        if name not in items:
            raise fault(
                f"component '{name}' is in no rubric item. Give it points in a [rubric.components], or none: "
                f"{name} = 0."
            )


def _item(table: RubricTable, measure: Measure | None, classes: int) -> RubricItem:
    require_file_name(table.id, "rubric item")
    _require_one_source(table)
    if table.components is not None:
        total = sum(table.components.values())
        if abs(total - table.points) > 1e-6:
            raise fault(
                f"rubric item '{table.id}' has {table.points:g} points "
                f"but its components add up to {total:g}. Change one of them."
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
    total = sum(part.points for part in table.parts)
    if abs(total - table.points) > 1e-6:
        raise fault(
            f"{item} has {table.points:g} points but its parts add up to {total:g}. Change one of them."
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
        problem = "two sources of points" if sources else "nothing that its points come from"
        raise fault(
            f"{item} has {problem}. Give it exactly one of [rubric.components], a measure "
            '(measured = "test_accuracy") and by = "person".'
        )
    for key, value in (("breakpoints", table.breakpoints), ("threshold", table.threshold)):
        if value is not None and table.measured is None:
            raise fault(f"{item} has '{key}' but is not measured. Remove it, or give it a measure.")


# --- hidden checks ---------------------------------------------------------------------------------------


KEY = "hidden_check"
_HEAD = """

# --- What is looked at when it is graded ------------------------------------------------------------------
# Written by `grader template`: the checks that students do not have, each with its weight within its
# component. `seen = true`: public checks look at the same.
"""


def hidden_checks_text(checks: Sequence[CheckSpec]) -> str:
    """The tables about the checks that are not public, for a student's assignment.toml.

    They hold what a student reads in the report anyway: not the name of a check, nor what it does.
    """
    causes_of_public = {cause for check in checks if check.public for cause in check.because}
    tables = [
        f"\n[[{KEY}]]\n"
        f"component = {json.dumps(check.component)}\n"
        f"title = {json.dumps(check.title, ensure_ascii=False)}\n"
        f"weight = {check.weight:g}\n" + ("seen = true\n" if check.id in causes_of_public else "")
        for check in checks
        if not check.public
    ]
    return _HEAD + "".join(tables) if tables else ""


def hidden_checks_of_copy(
    tables: Sequence[HiddenCheckTable], components: Sequence[str], *, public_only: bool
) -> tuple[HiddenCheck, ...]:
    """What a student's copy says about the checks that it lacks.

    Args:
        components: The names of the assignment's components.
        public_only: Whether it is a student's copy; the reference may not have such tables.

    Raises:
        CourseError: There is a table in the reference, or one names a component that does not exist.
    """
    if tables and not public_only:
        raise fault(f"[[{KEY}]] is what `grader template` writes into the students' copy. Remove it here.")
    for table in tables:
        if table.component not in (*components, SUBMISSION):
            advice = remedy(table.component, components, f"There are {listing(components)}.")
            raise fault(f"[[{KEY}]]: there is no component '{table.component}'. {advice}")
    return tuple(HiddenCheck(table.component, table.title, table.weight, table.seen) for table in tables)
