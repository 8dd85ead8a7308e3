"""What the use of forbidden parts costs, and what costs nothing but is left to a person."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.domain.assignment import ForbiddenRule
from grader.domain.evidence import Finding, Status
from grader.domain.program import ForbiddenUse


@dataclass(frozen=True)
class Forbidden:
    """The sentences about forbidden parts, by the rubric item's id or the component's name.

    Attributes:
        costs: It gets no points, and why.
        flags: It keeps its points, and what a person should look at.
    """

    costs: dict[str, str] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)


def forbidden(
    rules: Sequence[ForbiddenRule], uses: Sequence[ForbiddenUse], findings: Sequence[Finding] = ()
) -> Forbidden:
    """What follows from the forbidden parts that were seen, and from checks that passed with a remark.

    A use that no graded name reaches costs nothing and is not mentioned, nor is one whose rule the
    assignment no longer has.
    """
    by_pattern = {rule.pattern: rule for rule in rules}
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    for use in uses:
        rule = by_pattern.get(use.rule)
        if rule is not None and use.reached_from:
            places = reasons.setdefault((rule.policy, rule.costs), {}).setdefault(rule.reason, [])
            place = f"{use.name} at {use.place}"
            if place not in places:
                places.append(place)
    found = Forbidden()
    for (policy, target), by_reason in reasons.items():
        sentences = found.flags if policy == "flag" else found.costs
        sentences[target] = " ".join(f"{_first(places)}: {reason}" for reason, places in by_reason.items())
    remarks: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.status is Status.PASSED and finding.message:
            remarks.setdefault(finding.component, {})[finding.message] = None
    for component, told in remarks.items():
        before = [found.flags[component]] if component in found.flags else []
        found.flags[component] = " ".join([*before, *told])
    return found


def _first(places: Sequence[str]) -> str:
    rest = len(places) - 1
    return places[0] if not rest else f"{places[0]} (and {rest} more)"
