"""What lost points and what to fix: forbidden parts with their costs, and the fixes worth most points.

It says what the forbidden parts in a submission cost, and which of them cost nothing. It orders the fixes
by their worth, computed from the lost points of each component and its findings. It never takes points
away: the score that it reads has done so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.domain.analyzed_program import ForbiddenUse
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.assignment_rules import ForbiddenRule
from grader.domain.evidence import Blame, Evidence, Finding, FindingKind, Status, TrainingOutcome
from grader.domain.formatting import listed, named
from grader.domain.score import ComponentScore, Score
from grader.reports.student.training_texts import training_fix_text


@dataclass(frozen=True)
class ForbiddenCost:
    """What one target (a rubric item or a component) loses to forbidden parts.

    Attributes:
        target: The rubric item's id or the component's name.
        components: The components whose points it takes.
        lost: All points that the target has lost, whatever the cause.
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
        loses_points: Whether points are lost.
    """

    name: str
    where: str
    reason: str
    consequence: str
    loses_points: bool


def forbidden_costs(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[ForbiddenCost, ...]:
    """One entry per rubric item or component that loses its points to a reachable forbidden part."""
    rules = {rule.pattern: rule for rule in assignment.forbidden}
    uses: dict[str, list[tuple[ForbiddenRule, ForbiddenUse]]] = {}
    for use in evidence.forbidden:
        rule = rules.get(use.rule)
        if rule is not None and _takes_points(rule, use):
            uses.setdefault(rule.costs, []).append((rule, use))
    costs: list[ForbiddenCost] = []
    taken: set[str] = set()
    for target in sorted(uses, key=lambda name: name not in {item.id for item in assignment.rubric}):
        rule, use = uses[target][0]
        components, lost = _components_and_loss(assignment, score, target)
        free = () if taken & set(components) else components
        taken |= set(components)
        names = listed(list(dict.fromkeys(named(other_use.name) for _, other_use in uses[target])))
        costs.append(
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
    return tuple(costs)


def forbidden_rows(assignment: Assignment, evidence: Evidence) -> tuple[ForbiddenRow, ...]:
    """Every forbidden part that was seen, with what follows from it."""
    rules = {rule.pattern: rule for rule in assignment.forbidden}
    titles = {item.id: item.title for item in assignment.rubric}
    rows: list[ForbiddenRow] = []
    for use in evidence.forbidden:
        rule = rules.get(use.rule)
        forbids = rule is not None and _takes_points(rule, use)
        users = listed(use.reached_from)
        if rule is not None and forbids:
            target = titles.get(rule.costs, rule.costs)
            consequence = f"It is reached by {users}: no points for {target}."
        elif use.inside:
            consequence = f"{named(use.inside)} uses it inside: a person looks at it."
        elif use.in_training and rule is not None and rule.policy == "forbid":
            consequence = f"It is reached by {users}: a person decides what the measured accuracy is worth."
        elif use.reached_from:
            consequence = f"It is reached by {users}: a person looks at it."
        else:
            consequence = "No graded part reaches it: this costs nothing."
        rows.append(ForbiddenRow(use.name, str(use.place), rule.reason if rule else "", consequence, forbids))
    return tuple(rows)


def _takes_points(rule: ForbiddenRule, use: ForbiddenUse) -> bool:
    """Whether a use takes points: a graded name reaches it, and no person has to judge it first."""
    return rule.policy == "forbid" and bool(use.reached_from) and not (use.inside or use.in_training)


def _components_and_loss(assignment: Assignment, score: Score, target: str) -> tuple[tuple[str, ...], float]:
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


# --- fixes -----------------------------------------------------------------------------------------------


TRAINING = "training"


@dataclass(frozen=True)
class Fix:
    """One thing to fix, and what it is worth.

    Attributes:
        component: The stub's name, `submission` or `training`.
        points: What fixing it can bring back: never more than the score says is lost there.
        title: What is asked for.
        message: What is wrong.
        hint: One thing to try.
        where: The place in the student's file, or empty.
        diagnosis: The recognized mistake's id, if any.
        checks: The ids of the failed checks that it explains.
        also: Further messages of the same group.
        after: The parts whose fixes come before this one, as their faults may be its cause.
    """

    component: str
    points: float
    title: str
    message: str
    hint: str = ""
    where: str = ""
    diagnosis: str | None = None
    checks: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def fixes(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[Fix, ...]:
    """Everything that can be fixed, the fix worth most points first.

    A component's lost points are shared among its failed checks by weight:
    `lost * weight / sum(weights of the component's failed and blocked checks)`. While nothing of it is
    decided, or a forbidden part has zeroed it, a failed check counts `maximum * weight / sum(weights)`.
    Checks that could not be tried count toward the fix that unblocks them, and folded ones toward the fix
    of their cause.

    Args:
        assignment: For weights and maxima.
        evidence: For findings, forbidden parts and training.
        score: For the points that are lost.

    Returns:
        Fixes by points, descending; equal ones in the order of the assignment's components. A training that
        raised comes after the parts that it uses and whose checks failed: one of them may have raised.
    """
    forbidden = forbidden_costs(assignment, evidence, score)
    zeroed = {component for cost in forbidden for component in cost.components}
    weights = {check.id: check.weight for check in assignment.checks}
    made: list[Fix] = []
    orphans: list[tuple[Finding, float]] = []
    for component in _components(assignment, evidence.findings):
        of_component = [finding for finding in evidence.findings if finding.component == component]
        worth = _points_by_check(assignment, weights, score, component, of_component, component in zeroed)
        failed = [finding for finding in of_component if _is_students(finding, Status.FAILED)]
        folded = _folded_findings(of_component, failed)
        groups = _groups([finding for finding in failed if finding not in folded])
        blocked = [
            finding
            for finding in of_component
            if _is_students(finding, Status.SKIPPED) and finding not in folded
        ]
        fixed = [_fix_of_group(group, worth, folded) for group in groups]
        if fixed:
            fixed[0] = _with_more_points(fixed[0], sum(worth[finding.check] for finding in blocked))
        else:
            orphans += [(finding, worth[finding.check]) for finding in blocked]
        made += fixed
    made = _with_orphans(made, orphans)
    explained: dict[str, float] = {}
    for fix in made:
        explained[fix.component] = explained.get(fix.component, 0.0) + fix.points
    for cost in forbidden:
        unexplained = cost.lost - sum(explained.get(component, 0.0) for component in cost.components)
        made.append(
            Fix(
                cost.target if cost.target in cost.components else SUBMISSION,
                max(0.0, unexplained),
                cost.title,
                cost.message,
                cost.hint,
                cost.where,
                "forbidden_part",
            )
        )
    made += _training_fixes(assignment, evidence, score)
    return _causes_first(sorted(made, key=lambda fix: -round(fix.points, 6)))


def _causes_first(ordered: Sequence[Fix]) -> tuple[Fix, ...]:
    """The fixes; the parts that one comes after, and that stood behind it, stand right before it."""
    arranged = list(ordered)
    for fix in ordered:
        place = arranged.index(fix)
        causes = [other for other in arranged[place:] if other.component in fix.after]
        rest = [other for other in arranged[place:] if other.component not in fix.after]
        arranged[place:] = [*causes, *rest]
    return tuple(arranged)


def unimplemented(finding: Finding) -> bool:
    """Whether the finding says that the stub has not been written yet, rather than written wrongly."""
    return finding.status is Status.FAILED and finding.kind is FindingKind.NOT_IMPLEMENTED


def _components(assignment: Assignment, findings: Iterable[Finding]) -> tuple[str, ...]:
    """Component names in the assignment's order, then others that findings name."""
    declared = [component.name for component in assignment.components]
    return tuple(dict.fromkeys([*declared, *(finding.component for finding in findings)]))


def _is_students(finding: Finding, status: Status) -> bool:
    """Whether the finding has this status by the student's fault; failures are, unless they say otherwise."""
    blames = (Blame.STUDENT, None) if status is Status.FAILED else (Blame.STUDENT,)
    return finding.status is status and finding.blame in blames


def _points_by_check(
    assignment: Assignment,
    weights: Mapping[str, float],
    score: Score,
    component: str,
    findings: Sequence[Finding],
    zeroed: bool,
) -> dict[str, float]:
    """Check id -> the points that its failure costs, for the findings of one component."""
    share, maximum = _share_and_maximum(assignment, score, component)
    wrong = [
        finding
        for finding in findings
        if _is_students(finding, Status.FAILED) or _is_students(finding, Status.SKIPPED)
    ]
    if share is not None and share.points is not None and not zeroed:
        lost, over = share.maximum - share.points, sum(weights.get(finding.check, 1.0) for finding in wrong)
    else:
        declared = [check.weight for check in assignment.checks if check.component == component]
        lost, over = maximum, sum(declared) or sum(weights.get(finding.check, 1.0) for finding in findings)
    unit = max(0.0, lost) / over if over > 0 else 0.0
    return {finding.check: unit * weights.get(finding.check, 1.0) for finding in findings}


def _share_and_maximum(
    assignment: Assignment, score: Score, component: str
) -> tuple[ComponentScore | None, float]:
    """The component's score, if there is one, and its maximum (0 where a person gave full points)."""
    for line in score.lines:
        for share in line.components:
            if share.component == component:
                full = line.points is not None and line.points >= line.maximum
                return (replace(share, points=share.maximum) if full else share), share.maximum
    item = assignment.item_of(component)
    return None, (item.components or {}).get(component, 0.0) if item else 0.0


def _groups(failed: Sequence[Finding]) -> list[list[Finding]]:
    """Failed findings of one component, grouped by what one change fixes: one diagnosis, or one place.

    Two different recognized mistakes at the same place stay apart.
    """
    groups: list[list[Finding]] = []
    for finding in sorted(failed, key=lambda finding: finding.label is None):
        for group in groups:
            if finding.label is not None and group[0].label is not None:
                same = finding.label == group[0].label
            else:
                same = finding.where == group[0].where and bool(finding.where)
            if same or (finding.message == group[0].message and finding.where == group[0].where):
                group.append(finding)
                break
        else:
            groups.append([finding])
    return groups


def _folded_findings(findings: Sequence[Finding], failed: Sequence[Finding]) -> list[Finding]:
    """The findings with the same cause as one of the failed checks: one change fixes both."""
    failed_ids = {finding.check for finding in failed}
    causes = {finding.check for finding in failed if finding.because not in failed_ids}
    lost = [
        finding
        for finding in findings
        if _is_students(finding, Status.FAILED) or _is_students(finding, Status.SKIPPED)
    ]
    return [finding for finding in lost if finding.because in causes]


def _fix_of_group(group: Sequence[Finding], worth: dict[str, float], folded: Sequence[Finding] = ()) -> Fix:
    first = group[0]
    checks = [finding.check for finding in group]
    checks += [finding.check for finding in folded if finding.because in checks]
    messages = dict.fromkeys(finding.message for finding in group if finding.message)
    return Fix(
        component=first.component,
        points=sum(worth[check] for check in checks),
        title=first.title,
        message=first.message,
        hint=next((finding.hint for finding in group if finding.hint), ""),
        where=first.where,
        diagnosis=first.label,
        checks=tuple(checks),
        also=tuple(message for message in messages if message != first.message),
    )


def _with_more_points(fix: Fix, points: float) -> Fix:
    return replace(fix, points=fix.points + points)


def _with_orphans(made: list[Fix], orphans: Sequence[tuple[Finding, float]]) -> list[Fix]:
    """The fixes with blocked checks whose component has no failure of its own.

    They count toward the first failure of the submission as a whole (a syntax error, say). Without one,
    each message that says why they were blocked becomes a fix.
    """
    for index, fix in enumerate(made):
        if fix.component == SUBMISSION:
            return [
                *made[:index],
                _with_more_points(fix, sum(points for _, points in orphans)),
                *made[index + 1 :],
            ]
    reasons: dict[str, list[tuple[Finding, float]]] = {}
    for finding, points in orphans:
        reasons.setdefault(finding.message, []).append((finding, points))
    blocked = [
        _fix_of_group([finding for finding, _ in group], {finding.check: points for finding, points in group})
        for group in reasons.values()
    ]
    return [*made, *blocked]


def _training_fixes(assignment: Assignment, evidence: Evidence, score: Score) -> list[Fix]:
    """The points that measured training has lost, when the line is decided."""
    measured = {item.id: item for item in assignment.rubric}
    classes = {component.name for component in assignment.components if component.kind == "class"}
    broken = any(
        finding.status is Status.FAILED and finding.component in classes for finding in evidence.findings
    )
    made: list[Fix] = []
    allowed = {measure.id: measure.most_epochs for measure in assignment.measures}
    for line in score.lines:
        item = measured.get(line.id)
        if item is None or item.measured is None or line.points is None or line.points >= line.maximum:
            continue
        text = training_fix_text(item, evidence.of_measure(item.measured), allowed.get(item.measured))
        if text is not None:
            lost = line.maximum - line.points
            hint = (
                f"First fix the parts of the model, since training uses them. Then: {text.hint}"
                if broken
                else text.hint
            )
            raised = evidence.of_measure(item.measured).training.outcome is TrainingOutcome.FAILED
            after = assignment.trains if raised else ()
            made.append(Fix(TRAINING, lost, line.title, text.message, hint, text.where, after=after))
    return made
