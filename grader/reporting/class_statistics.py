"""What a class did as a whole: counts, frequent mistakes, pass rates, and what still needs a person."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Status, TrainingOutcome
from grader.domain.score import GradeStatus, Score
from grader.reporting.component_reports import noted
from grader.reporting.fixes import unimplemented
from grader.reporting.forbidden_parts import forbidden_rows
from grader.reporting.standing import lateness, standing
from grader.reporting.typesetting import counted, listed, points

Results = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class CommonMistake:
    """A recognized mistake and who makes it.

    Attributes:
        students: Their ids, sorted.
        message: As the first of them reads it.
    """

    diagnosis: str
    component: str
    message: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class CheckRate:
    """How a check went in the class, in numbers of students."""

    check: str
    component: str
    title: str
    passed: int
    failed: int
    skipped: int
    errored: int

    @property
    def share(self) -> float | None:
        """Passed among passed and failed, 0 to 1; None when nobody got that far."""
        tried = self.passed + self.failed
        return self.passed / tried if tried else None


def common_mistakes(results: Results) -> tuple[CommonMistake, ...]:
    """Recognized mistakes, the most frequent first; stubs that are not written yet come last."""
    makers: dict[tuple[str, str], dict[str, str]] = {}
    for evidence, score in results:
        for finding in evidence.findings:
            if finding.status is not Status.FAILED:
                continue
            diagnosis = finding.diagnosis or ("not_implemented" if unimplemented(finding) else None)
            if diagnosis is not None:
                key = (finding.component, diagnosis)
                makers.setdefault(key, {}).setdefault(score.student_id, finding.message)
    found = [
        CommonMistake(diagnosis, component, messages[min(messages)], tuple(sorted(messages)))
        for (component, diagnosis), messages in makers.items()
    ]
    return tuple(sorted(found, key=_rank))


def _rank(mistake: CommonMistake) -> tuple[bool, int, str, str]:
    unwritten = mistake.diagnosis == "not_implemented"
    return (unwritten, -len(mistake.students), mistake.component, mistake.diagnosis)


def check_rates(assignment: Assignment, results: Results) -> tuple[CheckRate, ...]:
    """One rate per check of the assignment, in its order, then per check that only findings know."""
    tallies: dict[str, Counter[Status]] = {}
    about = {check.id: (check.component, check.title) for check in assignment.checks}
    for evidence, _ in results:
        for finding in evidence.findings:
            tallies.setdefault(finding.check, Counter())[finding.status] += 1
            about.setdefault(finding.check, (finding.component, finding.title))
    return tuple(
        CheckRate(
            check,
            component,
            title,
            passed=tallies[check][Status.PASSED],
            failed=tallies[check][Status.FAILED],
            skipped=tallies[check][Status.SKIPPED],
            errored=tallies[check][Status.ERRORED],
        )
        for check, (component, title) in about.items()
        if check in tallies
    )


def flags(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[str, ...]:
    """What a person should look at in one result, the gravest first."""
    found: list[str] = []
    reason = score.reason or evidence.reason
    if score.status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR) and reason:
        found.append(reason)
    if evidence.missing:
        found.append(f"Missing: {listed(list(map(str, evidence.missing)))}")
    if evidence.findings and evidence.attestation.level == "unofficial":
        found.append("Unofficial: isolation was incomplete")
    rows = forbidden_rows(assignment, evidence)
    costing = dict.fromkeys(row.name for row in rows if row.costs)
    reached = {str(use.place): use for use in evidence.forbidden if use.reached_from}
    doubtful = dict.fromkeys(row.name for row in rows if not row.costs and row.where in reached)
    if costing:
        found.append(f"Forbidden part used: {listed(list(costing), 1)}")
    if doubtful:
        found.append(f"Decide about: {listed(list(doubtful), 1)}")
    remarks = dict.fromkeys(one.diagnosis or one.check for one in evidence.findings if noted(one))
    if remarks:
        found.append(f"Decide about: {listed([remark.replace('_', ' ') for remark in remarks])}")
    errored = [finding for finding in evidence.findings if finding.status is Status.ERRORED]
    if errored:
        found.append(f"{counted(len(errored), 'check')} could not be decided")
    if evidence.training.outcome is TrainingOutcome.BUDGET:
        found.append("Training was stopped by the time limit")
    if evidence.training.outcome is TrainingOutcome.UNKNOWN:
        found.append(evidence.training.reason or "Training could not be judged")
    if evidence.checkpoint.status in ("mismatch", "refused"):
        found.append("Weights do not fit" if evidence.checkpoint.status == "mismatch" else "Weights refused")
    if evidence.partial:
        found.append("Partial: a single file was graded")
    late = lateness(assignment, evidence)
    if late:
        taken = score.late.penalty if score.late else None
        found.append(f"Late by {late}: {points(taken)} points less" if taken else f"Late by {late}")
    elif score.late is not None and score.late.asked:
        found.append("Marked as late: look up by how much")
    return tuple(found)


def status_counts(results: Results) -> tuple[tuple[str, int], ...]:
    """(status in words, number of students), without those that nobody has."""
    words = {
        GradeStatus.GRADED: "graded",
        GradeStatus.INCOMPLETE: "incomplete",
        GradeStatus.REFUSED: "refused",
        GradeStatus.ENGINE_ERROR: "engine error",
    }
    tally = Counter(score.status for _, score in results)
    return tuple((word, tally[status]) for status, word in words.items() if tally[status])


def open_steps(results: Results) -> tuple[str, ...]:
    """What is still to be done before the grades can be handed out, nothing when they can."""
    waiting = [standing(score).awaiting for _, score in results if score.awaiting and _gradable(score)]
    steps: list[str] = []
    if waiting:
        steps.append(
            f"A person still marks {points(sum(waiting))} points in {counted(len(waiting), 'submission')}"
        )
    for status, text in (
        (GradeStatus.ENGINE_ERROR, "to be graded again after an engine error"),
        (GradeStatus.REFUSED, "refused, which a person decides about"),
        (GradeStatus.INCOMPLETE, "incomplete, with the total withheld"),
    ):
        number = sum(score.status is status and score.total is None for _, score in results)
        if number:
            steps.append(f"{counted(number, 'submission')} {'is' if number == 1 else 'are'} {text}")
    steps += _lateness_steps(results)
    not_run = sum(bool(score.not_run) for _, score in results)
    if not_run:
        steps.append(f"Training was not run for {counted(not_run, 'submission')}")
    undecided = sum(any(one.status is Status.ERRORED for one in evidence.findings) for evidence, _ in results)
    if undecided:
        steps.append(f"{counted(undecided, 'submission')} had a check that could not be decided")
    return tuple(f"{step}." for step in steps)


def _lateness_steps(results: Results) -> list[str]:
    asked = sum(score.late is not None and score.late.asked for _, score in results)
    steps = [f"A person decides what follows for {counted(asked, 'late submission')}"] if asked else []
    unknown = [evidence for evidence, score in results if _time_unknown(evidence, score)]
    if unknown:
        hints = listed(sorted({one.delivery.hint for one in unknown} - {""}), 2)
        steps.append(
            f"When {counted(len(unknown), 'submission')} came is not known, so nothing was taken off: look "
            f"for late ones in the LMS{f' ({hints} is only a hint)' if hints else ''}"
        )
    return steps


def _time_unknown(evidence: Evidence, score: Score) -> bool:
    late = score.late
    return late is not None and late.state == "unknown" and not late.asked and not evidence.partial


def _gradable(score: Score) -> bool:
    return score.status in (GradeStatus.GRADED, GradeStatus.INCOMPLETE)
