"""What the use of forbidden parts costs, and what costs nothing but is left to a person."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.domain.assignment import ForbiddenRule
from grader.domain.evidence import Finding
from grader.domain.program import TRAINING, ForbiddenUse
from grader.domain.quoting import named


@dataclass(frozen=True)
class Forbidden:
    """The sentences about forbidden parts, by the rubric item's id or the component's name.

    Attributes:
        costs: It gets no points, and why.
        flags: It keeps its points, and what a person should look at.
        undecided: A person decides on its points, and why.
        training: Why a person decides on what was measured of the training; empty: nobody is asked.
        flagged_training: What a person should look at in the training.
    """

    costs: dict[str, str] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    undecided: dict[str, str] = field(default_factory=dict)
    training: str = ""
    flagged_training: str = ""


def forbidden(
    rules: Sequence[ForbiddenRule],
    uses: Sequence[ForbiddenUse],
    findings: Sequence[Finding] = (),
    unproven: Sequence[str] = (),
) -> Forbidden:
    """What follows from the forbidden parts that were seen, and from checks that passed with a remark.

    A use that no graded name reaches costs nothing and is not mentioned, nor is one whose rule the
    assignment no longer has. One that the training alone reaches costs no component anything: the measured
    accuracy may be its, which a person decides.

    Args:
        unproven: The stages after which it is not known what was used.
    """
    by_pattern = {rule.pattern: rule for rule in rules}
    known = [(by_pattern[use.rule], use) for use in uses if use.rule in by_pattern and use.reached_from]
    # what another part used inside is that part's business; yet no flag hides what would cost points
    looked_at = [(rule, use) for rule, use in known if rule.policy == "flag" or use.inside]
    costly = [pair for pair in known if pair not in looked_at]
    costs = _by_target([pair for pair in costly if not pair[1].in_training])
    flags = _by_target([pair for pair in looked_at if not pair[1].in_training])
    for component, told in _remarks(findings).items():
        flags[component] = " ".join(filter(None, (flags.get(component, ""), *told)))
    training = _sentences([pair for pair in costly if pair[1].in_training])
    if training:
        training = f"The training uses what is not allowed. {training}"
    undecided: dict[str, str] = {}
    if TRAINING in unproven:
        training = " ".join(filter(None, (training, _unproven((TRAINING,)))))
    if stages := [stage for stage in unproven if stage != TRAINING]:
        undecided = {rule.costs: _unproven(stages) for rule in rules if rule.policy == "forbid"}
    flagged = _sentences([pair for pair in looked_at if pair[1].in_training])
    return Forbidden(costs, flags, undecided, training, flagged)


_Pairs = Sequence[tuple[ForbiddenRule, ForbiddenUse]]


def _by_target(pairs: _Pairs) -> dict[str, str]:
    targets = dict.fromkeys(rule.costs for rule, _ in pairs)
    return {target: _sentences([pair for pair in pairs if pair[0].costs == target]) for target in targets}


def _sentences(pairs: _Pairs) -> str:
    """`timm.create_model at homework.py:3 (and 2 more): Write it yourself.`, for each reason."""
    places: dict[str, dict[str, None]] = {}
    for rule, use in pairs:
        inside = f" within {named(use.inside)}" if use.inside else ""
        places.setdefault(rule.reason, {})[f"{named(use.name)}{inside} at {use.place}"] = None
    return " ".join(f"{_first(list(each))}: {reason}" for reason, each in places.items())


def _first(places: Sequence[str]) -> str:
    rest = len(places) - 1
    return places[0] if not rest else f"{places[0]} (and {rest} more)"


def _remarks(findings: Sequence[Finding]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.flagged:
            found.setdefault(finding.component, {})[finding.message] = None
    return found


def _unproven(stages: Sequence[str]) -> str:
    listed = ", ".join(stages)
    return (
        f"The watch for forbidden parts was disturbed (noticed after: {listed}), so it is not known what the "
        "code used. Read the source."
    )
