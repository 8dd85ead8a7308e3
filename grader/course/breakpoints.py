"""The breakpoints of a measured rubric item: at which values which points are given."""

import re
from itertools import pairwise

from grader.course.assignment_tables import RubricTable
from grader.course.contradictions import fault
from grader.domain.measure import Measure

CHANCE = "chance"
_OF_REFERENCE = re.compile(r"(\d+(?:\.\d+)?)\s*% of reference")


def breakpoints(table: RubricTable, measure: Measure, classes: int) -> tuple[tuple[float, float], ...]:
    """(value, points) in ascending order of the values.

    Args:
        measure: What the item is measured by.
        classes: How many classes the data have: guessing gets one in so many.

    Raises:
        CourseError: They are in no order, or give other points than the item has.
    """
    item, lower = f"rubric item '{table.id}'", measure.scale.lower_is_better
    if not table.breakpoints:
        ends = (
            f"[{{ at = 1.5, points = {table.points:g} }}, {{ at = 3.0, points = 0 }}]"
            if lower
            else f'[{{ at = "{CHANCE}", points = 0 }}, {{ at = 0.8, points = {table.points:g} }}]'
        )
        raise fault(f"{item} is measured but has no breakpoints. Add breakpoints = {ends}.")
    found = tuple((_value(entry.at, item, measure, classes), entry.points) for entry in table.breakpoints)
    for (lesser, before), (greater, after) in pairwise(found):
        if greater <= lesser:
            raise fault(
                f"{item}: the breakpoint at {greater:g} comes after {lesser:g}. Put them in ascending order."
            )
        if after < before if not lower else after > before:
            raise fault(
                f"{item}: the breakpoint at {greater:g} gives {after:g} points, "
                f"{'more' if lower else 'fewer'} than the {before:g} before it. Change one of them."
            )
    which, most = ("first", found[0][1]) if lower else ("last", found[-1][1])
    if most != table.points:
        raise fault(
            f"{item} has {table.points:g} points but its {which} breakpoint gives {most:g}. "
            "Change one of them."
        )
    return found


def threshold(table: RubricTable, measure: Measure) -> float | None:
    """The value that is asked for.

    Raises:
        CourseError: It can be no value of the measure.
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
    wanted = "a number from 0 to 1" if measure.scale.is_share else "a number"
    chance = f'"{CHANCE}" for what guessing gets, ' if measure.scale.is_share and classes else ""
    raise fault(
        f"{item} has a breakpoint at '{at}'. Write {wanted}, {chance}or \"95 % of reference\" for a share of "
        "what the reference reaches."
    )
