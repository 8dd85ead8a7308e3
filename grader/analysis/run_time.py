"""Forbidden parts that were used at run time, beyond those that the source shows.

A use is dropped only where the same part is already known with the same consequence, or where it happened
inside another part that already costs these points. `grader.worker.forbidden` and `grader.judge.student` find
out what was used; `grader.scoring.forbidden_costs` decides what it costs.

Tests: tests/analysis/test_run_time.py, tests/attacks/test_hidden_parts_cost.py
"""

from collections.abc import Iterable, Iterator, Sequence

from grader.analysis.forbidden import equivalents
from grader.domain.assignment import Assignment, ForbiddenRule
from grader.domain.program import LOADING, TRAINING, ForbiddenUse, Place, Program
from grader.domain.watch import ReachedPart


def run_time_uses(
    assignment: Assignment,
    program: Program,
    shown: Sequence[ForbiddenUse],
    reached: Iterable[ReachedPart],
) -> tuple[ForbiddenUse, ...]:
    """What is not shown: forbidden parts that were used all the same.

    One is left out only where the same part is shown, reached and with the same consequence, or where the
    code of another part used it and that part costs these points already.

    Args:
        shown: The uses that are known, from the source or an earlier stage.
        reached: What was used at run time.
    """
    found: dict[tuple[str, str, str], ForbiddenUse] = {}
    stages: dict[tuple[str, str, str], list[str]] = {}
    for part in reached:
        for rule in _rules(assignment, part.patterns):
            if part.inside and _is_paid(assignment, rule, part.within):
                continue
            if not part.inside and _is_shown(assignment, shown, rule, part):
                continue
            key = (rule.pattern, part.name, part.inside)
            stages.setdefault(key, []).append("the model" if part.stage == LOADING else part.stage)
            place = part.place or _place(program, part.stage)
            found.setdefault(key, ForbiddenUse(rule.pattern, part.name, place, (), part.inside))
    return tuple(_with_stages(found, stages))


def _with_stages(
    found: dict[tuple[str, str, str], ForbiddenUse], stages: dict[tuple[str, str, str], list[str]]
) -> Iterator[ForbiddenUse]:
    for key, use in found.items():
        graded = [stage for stage in stages[key] if stage != TRAINING]
        reached_from = tuple(dict.fromkeys(graded)) or (TRAINING,)
        yield ForbiddenUse(use.rule, use.name, use.place, reached_from, use.inside)


def _rules(assignment: Assignment, patterns: Sequence[str]) -> Iterator[ForbiddenRule]:
    """The rules of patterns; of those with the same consequence only the first."""
    seen: set[tuple[str, str]] = set()
    for rule in assignment.forbidden:
        if rule.pattern in patterns and (rule.costs, rule.policy) not in seen:
            seen.add((rule.costs, rule.policy))
            yield rule


def _is_paid(assignment: Assignment, rule: ForbiddenRule, within: Sequence[str]) -> bool:
    """Whether the part around one costs what it would cost itself."""
    item = assignment.item_of(rule.costs)
    targets = {rule.costs, item.id if item is not None else rule.costs}
    return any(
        around.policy == "forbid" and around.costs in targets
        for around in assignment.forbidden
        if around.pattern in within
    )


def _is_shown(
    assignment: Assignment, shown: Sequence[ForbiddenUse], rule: ForbiddenRule, part: ReachedPart
) -> bool:
    """Whether this part is known to be used, with this consequence."""
    consequences = {each.pattern: (each.costs, each.policy) for each in assignment.forbidden}
    names = equivalents(part.name)
    return any(
        consequences.get(use.rule) == (rule.costs, rule.policy)
        and any(_is_of(known, name) for known in equivalents(use.name) for name in names)
        for use in shown
        # what only the training uses costs something else
        if use.reached_from and not use.inside and (not use.in_training or part.stage == TRAINING)
    )


def _is_of(known: str, name: str) -> bool:
    """Whether a dotted name is that of a part, or of something in it."""
    return known == name or known.startswith(f"{name}.")


def _place(program: Program, stage: str) -> Place:
    """Where a component is defined; the file's beginning where there is none."""
    return (program.defined or {}).get(stage, Place(program.file, 1))
