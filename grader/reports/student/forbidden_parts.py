"""What the forbidden parts in a submission cost, and which of them cost nothing."""

from dataclasses import dataclass

from grader.domain.assignment import Assignment, ForbiddenRule
from grader.domain.evidence import Evidence
from grader.domain.formatting import listed
from grader.domain.program import ForbiddenUse
from grader.domain.quoting import named
from grader.domain.score import Score


@dataclass(frozen=True)
class ForbiddenCost:
    """What one target (a rubric item or a component) loses to forbidden parts.

    Attributes:
        target: The rubric item's id or the component's name.
        components: The components whose points it takes.
        lost: All the points that the target has lost, whatever the cause.
    """

    target: str
    components: tuple[str, ...]
    lost: float
    title: str
    message: str
    hint: str
    where: str


@dataclass(frozen=True)
class ForbiddenRow:
    """One forbidden part as the report lists it.

    Attributes:
        consequence: What follows from it, in a sentence.
        costs: Whether points are lost.
    """

    name: str
    where: str
    reason: str
    consequence: str
    costs: bool


def forbidden_costs(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[ForbiddenCost, ...]:
    """One entry per rubric item or component that a reachable forbidden part takes the points of."""
    rules = {rule.pattern: rule for rule in assignment.forbidden}
    uses: dict[str, list[tuple[ForbiddenRule, ForbiddenUse]]] = {}
    for use in evidence.forbidden:
        rule = rules.get(use.rule)
        if rule is not None and _costs(rule, use):
            uses.setdefault(rule.costs, []).append((rule, use))
    found: list[ForbiddenCost] = []
    taken: set[str] = set()
    for target in sorted(uses, key=lambda name: name not in {item.id for item in assignment.rubric}):
        rule, use = uses[target][0]
        components, lost = _lost(assignment, score, target)
        free = () if taken & set(components) else components
        taken |= set(components)
        names = listed(list(dict.fromkeys(named(other.name) for _, other in uses[target])))
        found.append(
            ForbiddenCost(
                target=target,
                components=free,
                lost=lost if free or not components else 0.0,
                title=f"{names} is not allowed in this assignment",
                message=rule.reason,
                hint=f"Write this part yourself and remove {named(use.name)}: your own code then counts.",
                where=str(use.place),
            )
        )
    return tuple(found)


def forbidden_rows(assignment: Assignment, evidence: Evidence) -> tuple[ForbiddenRow, ...]:
    """Every forbidden part that was seen, with what follows from it."""
    rules = {rule.pattern: rule for rule in assignment.forbidden}
    titles = {item.id: item.title for item in assignment.rubric}
    rows: list[ForbiddenRow] = []
    for use in evidence.forbidden:
        rule = rules.get(use.rule)
        forbids = rule is not None and _costs(rule, use)
        users = listed([_user(name) for name in use.reached_from])
        if rule is not None and forbids:
            target = titles.get(rule.costs, rule.costs)
            consequence = f"{users} reaches it: no points for {target}."
        elif use.inside:
            consequence = f"{named(use.inside)} uses it inside: a person looks at it."
        elif use.in_training and rule is not None and rule.policy == "forbid":
            consequence = f"{users} reaches it: a person decides what the measured accuracy is worth."
        elif use.reached_from:
            consequence = f"{users} reaches it: a person looks at it."
        else:
            consequence = "No graded part reaches it: this costs nothing."
        rows.append(ForbiddenRow(use.name, str(use.place), rule.reason if rule else "", consequence, forbids))
    return tuple(rows)


def _user(name: str) -> str:
    """A graded name as it is; `The training`, `The model` as a sentence begins."""
    return name.capitalize() if " " in name else name


def _costs(rule: ForbiddenRule, use: ForbiddenUse) -> bool:
    """Whether a use costs points: a graded name reaches it, and it is no business of another part."""
    return rule.policy == "forbid" and bool(use.reached_from) and not (use.inside or use.in_training)


def _lost(assignment: Assignment, score: Score, target: str) -> tuple[tuple[str, ...], float]:
    """The components that a target stands for, and the points that it has lost so far."""
    for line in score.lines:
        if line.id == target:
            item = next((item for item in assignment.rubric if item.id == target), None)
            names = tuple(item.components or ()) if item else ()
            return names, line.maximum - (line.points or 0.0)
        for share in line.components:
            if share.component == target:
                return (target,), share.maximum - (share.points or 0.0)
    return (), 0.0
