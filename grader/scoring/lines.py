"""One line of the rubric, by the source of its points."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from grader.domain.allowed_training import beyond_what_is_allowed
from grader.domain.assignment import Assignment, RubricItem
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.score import ComponentScore, LineState, ScoreLine, Waiver, rounded
from grader.domain.study_table import StudyAgain
from grader.scoring.components import share, undecided_share, without_points
from grader.scoring.forbidden_costs import Forbidden
from grader.scoring.measured import measured_line
from grader.scoring.points import plain


def scored_line(
    item: RubricItem,
    assignment: Assignment,
    evidence: Evidence,
    found: Forbidden,
    waived: Mapping[str, Waiver],
) -> ScoreLine:
    """The item's points as the evidence has them.

    Args:
        item: One of the assignment's rubric items.
        found: What forbidden parts cost.
        waived: The checks that count as passed for the whole class, each with who says so and why.
    """
    if item.components is not None:
        line = _components_line(item, item.components, assignment, evidence, found, waived)
    elif item.measured is not None:
        line = _after_training(measured_line(item, evidence.of_measure(item.measured)), found)
        for reason, accepted in _changed(item.measured, assignment, evidence):
            line = replace(line, reason=f"{line.reason} {reason}") if accepted else _asking(line, reason)
        if beyond := _beyond(item.measured, assignment, evidence):
            line = _asking(line, beyond)
    elif item.study:
        line = study_line(item, evidence.study)
    else:
        line = person_line(item)
    if item.id in found.costs:
        return replace(line, points=0.0, state=LineState.DECIDED, floor=None, reason=found.costs[item.id])
    if item.id in found.undecided:
        line = _asking(line, found.undecided[item.id])
    if item.id in found.flags:
        return replace(line, reason=f"{line.reason} A person has a look: {found.flags[item.id]}")
    return line


def person_line(item: RubricItem) -> ScoreLine:
    """The line of an item that a person marks, before anybody has."""
    return ScoreLine(item.id, item.title, None, item.points, "A person marks this.", LineState.AWAITING)


def study_line(item: RubricItem, study: StudyAgain | None) -> ScoreLine:
    """Full points where rows of the study that were trained again agree with it, else a person's."""
    if study is None or study.agrees is None:
        why = "No row of the study was trained again." if study is None else _not_compared(study)
        return undecided_line(item, f"{why} A person marks this.")
    told = " and ".join(
        f"{100 * claimed:+.1f} points claimed, {100 * measured:+.1f} measured"
        for _, claimed, measured in study.differences
    )
    chance = f"chance alone makes up to {100 * study.tolerance:.1f}"
    if not study.agrees:
        why = f"Trained again, a row differs from the base otherwise than claimed: {told}; {chance}."
        return undecided_line(item, f"{why} A person marks this.")
    why = f"Trained again, the rows differ from the base as claimed: {told}; {chance}."
    return ScoreLine(item.id, item.title, item.points, item.points, why, LineState.DECIDED)


def _not_compared(study: StudyAgain) -> str:
    return study.reason or next((row.why_not for row in study.rows if row.why_not), "")


def undecided_line(item: RubricItem, reason: str) -> ScoreLine:
    """The line of an item about which nothing was found out."""
    return ScoreLine(item.id, item.title, None, item.points, reason, LineState.AWAITING)


def lost_line(item: RubricItem, *, handed_in: bool) -> ScoreLine:
    """The line of an item about which nothing can be found out, where a person said that the rest counts.

    Args:
        handed_in: There is code, and nothing in it can be judged.
    """
    why = "Nothing in the code could be graded" if handed_in else "No code was handed in"
    return ScoreLine(
        item.id, item.title, 0.0, item.points, f"{why}, so this gives no points.", LineState.DECIDED
    )


def _asking(line: ScoreLine, reason: str) -> ScoreLine:
    """The line with its points left to a person; where there are none to lose, as it is."""
    if line.points == 0.0:
        return line
    told = f"{line.reason} {reason} A person decides."
    return replace(line, points=None, state=LineState.AWAITING, floor=None, reason=told)


def _beyond(measure: str, assignment: Assignment, evidence: Evidence) -> str:
    """What is to be said where more was trained than the assignment allows."""
    own = evidence.of_measure(measure)
    return " ".join(
        told
        for each in assignment.measures
        if each.id == measure
        for told in beyond_what_is_allowed(each, own.plan.rehearsal, len(own.training.epochs))
    )


def _changed(measure: str, assignment: Assignment, evidence: Evidence) -> Iterator[tuple[str, bool]]:
    """What is to be said where a given function that the measure calls is not as it was given.

    A component is given when no points stand for it. Its checks say whether it is what it was.

    Yields:
        A sentence, and whether the assignment accepts the change: then what was measured counts.
    """
    call = next((each.call for each in assignment.measures if each.id == measure), None)
    if call is None:
        return
    points = [item.components or {} for item in assignment.rubric]
    for name in dict.fromkeys((call.model, call.function)):
        failed = None if any(each.get(name) for each in points) else _failed(name, evidence)
        if failed is not None and failed.diagnosis in call.accepts:
            yield failed.message, True
        elif failed is not None:
            yield f"`{name}` is given, and it no longer does what it did: {failed.message}", False


def _failed(component: str, evidence: Evidence) -> Finding | None:
    own = [finding for finding in evidence.findings if finding.component == component]
    return next((finding for finding in own if finding.status is Status.FAILED), None)


def _after_training(line: ScoreLine, found: Forbidden) -> ScoreLine:
    """What was measured, with what is to be said of forbidden parts that the training used."""
    if found.training and line.state != LineState.NOT_RUN:
        line = _asking(line, found.training)
    if found.flagged_training:
        line = replace(line, reason=f"{line.reason} A person has a look: {found.flagged_training}")
    return line


def _components_line(
    item: RubricItem,
    components: Mapping[str, float],
    assignment: Assignment,
    evidence: Evidence,
    found: Forbidden,
    waived: Mapping[str, Waiver],
) -> ScoreLine:
    shares = []
    for name, maximum in components.items():
        own = share(name, maximum, assignment.checks, evidence.findings)
        gifts = [
            f"'{check.id}' counts as passed for the whole class ({waived[check.id].why})."
            for check in assignment.checks
            if check.component == name and check.id in waived
        ]
        own = replace(own, score=replace(own.score, reason=" ".join([own.score.reason, *gifts])))
        if item.id in found.costs:
            own = without_points(own, found.costs[item.id])
        elif name in found.costs:
            own = without_points(own, found.costs[name])
        elif name in found.undecided and own.score.points != 0.0:
            own = undecided_share(own, found.undecided[name])
        elif name in found.flags:
            noted = f"{own.score.reason} A person has a look: {found.flags[name]}"
            own = replace(own, score=replace(own.score, reason=noted))
        shares.append(own)
    secured = rounded(sum(own.secured for own in shares))
    undecided = any(own.score.points is None for own in shares)
    scores = tuple(own.score for own in shares)
    return ScoreLine(
        id=item.id,
        title=item.title,
        points=None if undecided else secured,
        maximum=item.points,
        reason=_told(scores, found),
        state=LineState.AWAITING if undecided else LineState.DECIDED,
        floor=secured if undecided else None,
        components=scores,
    )


def _told(scores: Sequence[ComponentScore], found: Forbidden) -> str:
    """The components that a reader should know about, each with its reason."""
    told = []
    for score in scores:
        if score.points is None:
            told.append(f"{score.component} is undecided: {score.reason}")
        elif score.points < score.maximum or score.component in found.flags:
            told.append(
                f"{score.component} has {plain(score.points)} of {plain(score.maximum)}: {score.reason}"
            )
    return " ".join(told) or "All checks passed."
