"""One line of the rubric: its points and its reason, by where the points come from.

It scores an item by the share of passed checks of its components, by what was measured, by a study or by
a person, and says what the use of forbidden parts costs, and what of it costs nothing but is left to a
person. What is unknown is never a pass and never a zero. Marks of people are no concern of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grader.domain.analyzed_program import TRAINING, ForbiddenUse
from grader.domain.assignment import Assignment, CheckSpec, ForbiddenRule, RubricItem
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
        secured: The points that it has for certain: all of them when decided, else those of the checks
            that passed.
    """

    score: ComponentScore
    secured: float


def share(component: str, maximum: float, checks: Sequence[CheckSpec], findings: Sequence[Finding]) -> Share:
    """The component's share of its points.

    Every declared check must have left exactly one finding. One that left none or two, that the grader or
    the check's author must answer for, or that was skipped for no fault of the student's leaves the
    component undecided.

    Args:
        component: Its name.
        maximum: Its points.
        checks: All checks of the assignment.
        findings: All findings about the submission.
    """
    own = [check for check in checks if check.component == component]
    if not own and not maximum:
        reason = "It is given, and no points stand for it."
        return Share(ComponentScore(component, 0.0, maximum, 0, 0, reason), 0.0)
    if not own:
        reason = f"No check judges {component}."
        return Share(ComponentScore(component, None, maximum, 0, 0, reason), 0.0)
    open_questions, passed, weight = [], 0, 0.0
    for check in own:
        left = [finding for finding in findings if finding.check == check.id]
        if question := _question(check, left):
            open_questions.append(question)
        elif left[0].status is Status.PASSED:
            passed, weight = passed + 1, weight + check.weight
    secured = rounded(maximum * weight / sum(check.weight for check in own))
    if open_questions:
        reason = " ".join(dict.fromkeys(open_questions))
        return Share(ComponentScore(component, None, maximum, passed, len(own), reason), secured)
    reason = _tally(passed, len(own))
    return Share(ComponentScore(component, secured, maximum, passed, len(own), reason), secured)


def without_points(found: Share, reason: str) -> Share:
    """The same share with no points, for a reason that outweighs its checks."""
    old = found.score
    return Share(ComponentScore(old.component, 0.0, old.maximum, old.passed, old.total, reason), 0.0)


def undecided_share(found: Share, reason: str) -> Share:
    """The same share with its points left to a person."""
    old = found.score
    told = f"{old.reason} {reason} A person decides."
    return Share(ComponentScore(old.component, None, old.maximum, old.passed, old.total, told), 0.0)


def _question(check: CheckSpec, left: Sequence[Finding]) -> str:
    """Why the check is undecided; empty when it is decided."""
    if len(left) != 1:
        return f"The check '{check.id}' left {'no finding' if not left else f'{len(left)} findings'}."
    finding = left[0]
    if finding.status is Status.PASSED:
        return ""
    if finding.status is Status.FAILED and finding.blame in (Blame.STUDENT, None):
        return ""
    if finding.status is Status.SKIPPED and finding.blame is Blame.STUDENT:
        return ""
    if finding.kind is FindingKind.UNDECIDED:
        return f"The check '{check.id}' leaves it to a person."
    whose = "a mistake in the check" if finding.blame is Blame.INSTRUCTOR else "the grader's fault"
    return f"The check '{check.id}' could not be decided ({whose})."


def _tally(passed: int, total: int) -> str:
    if passed == total:
        return "The check passed." if total == 1 else f"All {total} checks passed."
    return f"{passed} of {total} checks passed."


# --- forbidden costs -------------------------------------------------------------------------------------


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


# --- lines -----------------------------------------------------------------------------------------------


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
