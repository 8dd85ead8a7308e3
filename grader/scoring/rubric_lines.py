"""Scores one line of the rubric: its points and its reason, by the source of the points.

It scores an item by the share of passed checks of its components, by a measurement, by a study or by a
person. It also says which uses of forbidden parts cost points, and which cost nothing but go to a person.
Something unknown is never a pass and never a zero. People's marks are applied elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from grader.domain.analyzed_program import TRAINING, ForbiddenUse
from grader.domain.assignment import Assignment, CheckSpec, RubricItem
from grader.domain.assignment_rules import ForbiddenRule
from grader.domain.evidence import Blame, Evidence, Finding, FindingKind, Status
from grader.domain.formatting import named
from grader.domain.measure import StudyAgain
from grader.domain.score import ComponentScore, LineState, ScoreLine, Waiver, rounded
from grader.domain.submission_result import beyond_what_is_allowed
from grader.scoring.measurements import measured_line, plain


@dataclass(frozen=True)
class Share:
    """A component's score.

    Attributes:
        secured: The points that are certain: all of them if decided, else those of the checks that passed.
    """

    score: ComponentScore
    secured: float


def share(component: str, maximum: float, checks: Sequence[CheckSpec], findings: Sequence[Finding]) -> Share:
    """The component's share of its points.

    Every declared check must have left exactly one finding. The component is undecided if a check left none
    or two, if the grader or the check's author is to blame, or if it was skipped through no fault of the
    student.

    Args:
        component: Its name.
        maximum: Its points.
        checks: All checks of the assignment.
        findings: All findings about the submission.
    """
    own_checks = [check for check in checks if check.component == component]
    if not own_checks and not maximum:
        reason = "It is given, so it carries no points."
        return Share(ComponentScore(component, 0.0, maximum, 0, 0, reason), 0.0)
    if not own_checks:
        reason = f"No check judges {component}."
        return Share(ComponentScore(component, None, maximum, 0, 0, reason), 0.0)
    own_findings: dict[str, list[Finding]] = {check.id: [] for check in own_checks}
    for finding in findings:
        if finding.check in own_findings:
            own_findings[finding.check].append(finding)
    doubts: dict[_Doubt, list[str]] = {}
    passed, weight = 0, 0.0
    for check in own_checks:
        check_findings = own_findings[check.id]
        if doubt := _doubt(check_findings):
            doubts.setdefault(doubt, []).append(check.id)
        elif check_findings[0].status is Status.PASSED:
            passed, weight = passed + 1, weight + check.weight
    secured = rounded(maximum * weight / sum(check.weight for check in own_checks))
    if doubts:
        reason = " ".join(_in_words(doubt, ids) for doubt, ids in doubts.items())
        return Share(ComponentScore(component, None, maximum, passed, len(own_checks), reason), secured)
    reason = _tally(passed, len(own_checks))
    return Share(ComponentScore(component, secured, maximum, passed, len(own_checks), reason), secured)


def without_points(share_before: Share, reason: str) -> Share:
    """The share without points, for a reason that outweighs its checks."""
    component_score = share_before.score
    return Share(
        ComponentScore(
            component_score.component,
            0.0,
            component_score.maximum,
            component_score.passed,
            component_score.total,
            reason,
        ),
        0.0,
    )


def undecided_share(share_before: Share, reason: str) -> Share:
    """The share with its points left to a person."""
    component_score = share_before.score
    full_reason = f"{component_score.reason} {reason} A person decides."
    return Share(
        ComponentScore(
            component_score.component,
            None,
            component_score.maximum,
            component_score.passed,
            component_score.total,
            full_reason,
        ),
        0.0,
    )


class _Doubt(Enum):
    """Why a check is undecided."""

    NO_FINDING = auto()
    SEVERAL_FINDINGS = auto()
    LEFT_TO_A_PERSON = auto()
    MISTAKE_IN_THE_CHECK = auto()
    THE_GRADERS_FAULT = auto()


def _doubt(left: Sequence[Finding]) -> _Doubt | None:
    """Why a check that left these findings is undecided; None if it is decided."""
    if len(left) != 1:
        return _Doubt.SEVERAL_FINDINGS if left else _Doubt.NO_FINDING
    finding = left[0]
    if finding.status is Status.PASSED:
        return None
    if finding.status is Status.FAILED and finding.blame in (Blame.STUDENT, None):
        return None
    if finding.status is Status.SKIPPED and finding.blame is Blame.STUDENT:
        return None
    if finding.kind is FindingKind.UNDECIDED:
        return _Doubt.LEFT_TO_A_PERSON
    is_in_the_check = finding.blame is Blame.INSTRUCTOR
    return _Doubt.MISTAKE_IN_THE_CHECK if is_in_the_check else _Doubt.THE_GRADERS_FAULT


def _in_words(doubt: _Doubt, checks: Sequence[str]) -> str:
    """The doubt about these checks: one is named, of several their number says more than their names."""
    name, number = checks[0], len(checks)
    if doubt is _Doubt.NO_FINDING:
        return f"The check '{name}' left no finding." if number == 1 else f"{number} checks left no finding."
    if doubt is _Doubt.SEVERAL_FINDINGS:
        if number == 1:
            return f"The check '{name}' left several findings."
        return f"{number} checks left several findings each."
    if doubt is _Doubt.LEFT_TO_A_PERSON:
        if number == 1:
            return f"The check '{name}' leaves it to a person."
        return f"{number} checks leave it to a person."
    if doubt is _Doubt.MISTAKE_IN_THE_CHECK:
        if number == 1:
            return f"The check '{name}' could not be decided (a mistake in the check)."
        return f"{number} checks could not be decided (mistakes in the checks)."
    if number == 1:
        return f"The check '{name}' could not be decided (the grader's fault)."
    return f"{number} checks could not be decided (the grader's fault)."


def _tally(passed: int, total: int) -> str:
    if passed == total:
        return "The check passed." if total == 1 else f"All {total} checks passed."
    return f"{passed} of {total} checks passed."


# --- forbidden costs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forbidden:
    """Sentences about forbidden parts, by the rubric item's id or the component's name.

    Attributes:
        costs: Why it gets no points.
        flags: What a person should look at, although it keeps its points.
        undecided: Why a person decides on its points.
        training: Why a person decides on the measurement of the training; empty: nobody is asked.
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
    """The consequences of forbidden parts that were seen, and of checks that passed with a remark.

    A use that no graded name reaches costs nothing and is not mentioned, and neither is one whose rule the
    assignment no longer has. One that only the training reaches costs no component anything: the measured
    accuracy may be due to it, which a person decides.

    Args:
        unproven: The stages after which it is unknown what was used.
    """
    by_pattern = {rule.pattern: rule for rule in rules}
    counted_uses = [
        (by_pattern[use.rule], use) for use in uses if use.rule in by_pattern and use.reached_from
    ]
    # what a forbidden part uses internally costs nothing by itself; a person only looks at it
    looked_at = [(rule, use) for rule, use in counted_uses if rule.policy == "flag" or use.inside]
    costly = [pair for pair in counted_uses if pair not in looked_at]
    costs = _by_target([pair for pair in costly if not pair[1].in_training])
    flags = _by_target([pair for pair in looked_at if not pair[1].in_training])
    for component, remarks in _remarks(findings).items():
        flags[component] = " ".join(filter(None, (flags.get(component, ""), *remarks)))
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
    return " ".join(
        f"{_first_place(list(places_for_reason))}: {reason}" for reason, places_for_reason in places.items()
    )


def _first_place(places: Sequence[str]) -> str:
    rest = len(places) - 1
    return places[0] if not rest else f"{places[0]} (and {rest} more)"


def _remarks(findings: Sequence[Finding]) -> dict[str, dict[str, None]]:
    remarks: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.flagged:
            remarks.setdefault(finding.component, {})[finding.message] = None
    return remarks


def _unproven(stages: Sequence[str]) -> str:
    listed = ", ".join(stages)
    return (
        f"The watch for forbidden parts was disturbed (noticed after: {listed}), so it is not known what the "
        "code used. Read the source."
    )


# --- lines -----------------------------------------------------------------------------------------------


def scored_line(
    item: RubricItem,
    assignment: Assignment,
    evidence: Evidence,
    consequences: Forbidden,
    waived: Mapping[str, Waiver],
) -> ScoreLine:
    """The item's points by the evidence.

    Args:
        item: One of the assignment's rubric items.
        consequences: The consequences of forbidden parts.
        waived: The checks that count as passed for the whole class, each with who decided that and why.
    """
    if item.components is not None:
        line = _components_line(item, item.components, assignment, evidence, consequences, waived)
    elif item.measured is not None:
        line = _after_training(measured_line(item, evidence.of_measure(item.measured)), consequences)
        for reason, accepted in _changed_given_functions(item.measured, assignment, evidence):
            line = replace(line, reason=f"{line.reason} {reason}") if accepted else _asking(line, reason)
        if beyond := _training_beyond_limits(item.measured, assignment, evidence):
            line = _asking(line, beyond)
    elif item.study:
        line = study_line(item, evidence.study)
    else:
        line = person_line(item)
    if item.id in consequences.costs:
        return replace(
            line, points=0.0, state=LineState.DECIDED, floor=None, reason=consequences.costs[item.id]
        )
    if item.id in consequences.undecided:
        line = _asking(line, consequences.undecided[item.id])
    if item.id in consequences.flags:
        return replace(line, reason=f"{line.reason} A person will take a look: {consequences.flags[item.id]}")
    return line


def person_line(item: RubricItem) -> ScoreLine:
    """The line of an item that a person marks, while it is not marked."""
    return ScoreLine(item.id, item.title, None, item.points, "A person marks this.", LineState.AWAITING)


def study_line(item: RubricItem, study: StudyAgain | None) -> ScoreLine:
    """Full points if the study's retrained rows agree with it; otherwise a person gives the points."""
    if study is None or study.agrees is None:
        why = "No row of the study was trained again." if study is None else _not_compared(study)
        return undecided_line(item, f"{why} A person marks this.")
    comparison = " and ".join(
        f"{100 * claimed:+.1f} points claimed, {100 * measured:+.1f} measured"
        for _, claimed, measured in study.differences
    )
    chance = f"chance alone accounts for up to {100 * study.tolerance:.1f}"
    if not study.agrees:
        why = f"When trained again, a row does not differ from the base as claimed: {comparison}; {chance}."
        return undecided_line(item, f"{why} A person marks this.")
    why = f"When trained again, the rows differ from the base as claimed: {comparison}; {chance}."
    return ScoreLine(item.id, item.title, item.points, item.points, why, LineState.DECIDED)


def _not_compared(study: StudyAgain) -> str:
    return study.reason or next((row.why_not for row in study.rows if row.why_not), "")


def undecided_line(item: RubricItem, reason: str) -> ScoreLine:
    """The line of an item about which nothing is known."""
    return ScoreLine(item.id, item.title, None, item.points, reason, LineState.AWAITING)


def lost_line(item: RubricItem, *, handed_in: bool) -> ScoreLine:
    """The line of an item about which nothing can be known, if a person ruled that the rest counts.

    Args:
        handed_in: Whether there is code, none of which can be judged.
    """
    why = "Nothing in the code could be graded" if handed_in else "No code was handed in"
    return ScoreLine(
        item.id, item.title, 0.0, item.points, f"{why}, so this gives no points.", LineState.DECIDED
    )


def _asking(line: ScoreLine, reason: str) -> ScoreLine:
    """The line with its points left to a person; unchanged if it has none to lose."""
    if line.points == 0.0:
        return line
    full_reason = f"{line.reason} {reason} A person decides."
    return replace(line, points=None, state=LineState.AWAITING, floor=None, reason=full_reason)


def _training_beyond_limits(measure: str, assignment: Assignment, evidence: Evidence) -> str:
    """Sentences on a training beyond what the assignment allows; empty if there is none."""
    model_evidence = evidence.of_measure(measure)
    return " ".join(
        sentence
        for measured in assignment.measures
        if measured.id == measure
        for sentence in beyond_what_is_allowed(
            measured,
            model_evidence.plan.rehearsal,
            len(model_evidence.training.epochs),
            model_evidence.training.steps_per_batch,
        )
    )


def _changed_given_functions(
    measure: str, assignment: Assignment, evidence: Evidence
) -> Iterator[tuple[str, bool]]:
    """Remarks on given functions that the measure calls and that the student changed.

    A component is given if it has no points. Its checks say whether it still does the same.

    Yields:
        A sentence, and whether the assignment accepts the change, so that the measurement counts.
    """
    call = next((spec.call for spec in assignment.measures if spec.id == measure), None)
    if call is None:
        return
    points = [item.components or {} for item in assignment.rubric]
    for name in dict.fromkeys((call.model, call.function)):
        failed = (
            None if any(item_points.get(name) for item_points in points) else _failed_finding(name, evidence)
        )
        if failed is not None and failed.diagnosis in call.accepts:
            yield failed.message, True
        elif failed is not None:
            yield f"`{name}` is given, but it no longer does what it did: {failed.message}", False


def _failed_finding(component: str, evidence: Evidence) -> Finding | None:
    own_findings = [finding for finding in evidence.findings if finding.component == component]
    return next((finding for finding in own_findings if finding.status is Status.FAILED), None)


def _after_training(line: ScoreLine, consequences: Forbidden) -> ScoreLine:
    """The measured line, with remarks on forbidden parts that the training used."""
    if consequences.training and line.state != LineState.NOT_RUN:
        line = _asking(line, consequences.training)
    if consequences.flagged_training:
        line = replace(
            line, reason=f"{line.reason} A person will take a look: {consequences.flagged_training}"
        )
    return line


def _components_line(
    item: RubricItem,
    components: Mapping[str, float],
    assignment: Assignment,
    evidence: Evidence,
    consequences: Forbidden,
    waived: Mapping[str, Waiver],
) -> ScoreLine:
    shares = []
    for name, maximum in components.items():
        component_share = share(name, maximum, assignment.checks, evidence.findings)
        gifts = [
            f"'{check.id}' counts as passed for the whole class ({waived[check.id].why})."
            for check in assignment.checks
            if check.component == name and check.id in waived
        ]
        component_share = replace(
            component_share,
            score=replace(component_share.score, reason=" ".join([component_share.score.reason, *gifts])),
        )
        if item.id in consequences.costs:
            component_share = without_points(component_share, consequences.costs[item.id])
        elif name in consequences.costs:
            component_share = without_points(component_share, consequences.costs[name])
        elif name in consequences.undecided and component_share.score.points != 0.0:
            component_share = undecided_share(component_share, consequences.undecided[name])
        elif name in consequences.flags:
            noted = f"{component_share.score.reason} A person will take a look: {consequences.flags[name]}"
            component_share = replace(component_share, score=replace(component_share.score, reason=noted))
        shares.append(component_share)
    secured = rounded(sum(component_share.secured for component_share in shares))
    undecided = any(component_share.score.points is None for component_share in shares)
    scores = tuple(component_share.score for component_share in shares)
    return ScoreLine(
        id=item.id,
        title=item.title,
        points=None if undecided else secured,
        maximum=item.points,
        reason=_component_reasons(scores, consequences),
        state=LineState.AWAITING if undecided else LineState.DECIDED,
        floor=secured if undecided else None,
        components=scores,
    )


def _component_reasons(scores: Sequence[ComponentScore], consequences: Forbidden) -> str:
    """The components that did not get full points or were flagged, each with its reason."""
    sentences = []
    for score in scores:
        if score.points is None:
            sentences.append(f"{score.component} is undecided: {score.reason}")
        elif score.points < score.maximum or score.component in consequences.flags:
            sentences.append(
                f"{score.component} has {plain(score.points)} of {plain(score.maximum)}: {score.reason}"
            )
    return " ".join(sentences) or "All checks passed."
