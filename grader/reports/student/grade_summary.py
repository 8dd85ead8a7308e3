"""The first screen of a report: the points in a sentence, what to know before them, and what changed.

It words the headline, the banners, the segments of the bar of points, and what changed since a grade was
released: then and now, and nothing in between. It never scores and never decides whether a grade is final:
it says what the score holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.evidence import Evidence, Finding, Status, TrainingOutcome
from grader.domain.formatting import listed, named, points, stamp
from grader.domain.score import GradeStatus, LineState, Score
from grader.domain.several_attempts import ResubmissionRecord, ResubmissionState
from grader.reports.student.fixes import forbidden_rows, unimplemented
from grader.reports.student.training_charts import Segment


def changed_lines(score: Score) -> Mapping[str, str]:
    """Rubric item, or part of one -> a sentence, for those whose points have changed since their release.

    Each is compared with the first release in which it had points; newly known points are not a change.
    """
    if score.released is None:
        return {}
    now = {line.id: line.points for line in score.lines}
    now |= {f"{line.id}.{part.id}": part.points for line in score.lines for part in line.parts}
    return {
        target: _change_sentence(when, before, now[target])
        for target, before, when in score.released.lines
        if target in now and now[target] != before
    }


def changed_grade(score: Score) -> str:
    """The same for the grade, after what lateness costs; empty where it has not changed.

    A grade that was released while something was open was expected to grow, so growth is not a change.
    """
    if score.released is None or score.released.whole is None:
        return ""
    before, when = score.released.whole
    if before == score.final:
        return ""
    late = score.late is not None and bool(score.late.penalty)
    return _change_sentence(when, before, score.final, ", after the penalty for lateness" if late else "")


def _change_sentence(when: datetime, before: float, now: float | None, how: str = "") -> str:
    return f"Changed since {when:%Y-%m-%d}: {points(before)} → {points(now)}{how}."


# --- points ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Banner:
    """Something that a reader must know before the points.

    Attributes:
        tone: `note` or `warning`.
    """

    tone: str
    title: str
    text: str


@dataclass(frozen=True)
class PointsSummary:
    """The points of the first screen.

    Attributes:
        earned: The points known so far: the total, or what it would be if it were not withheld.
        decided: The maximum of the decided lines.
        awaiting: The maximum of the lines that a person still marks.
        not_run: The maximum of the lines that were not run.
        later: The maximum of the lines that are shown when grades are released.
        withheld: Whether there is no total for now.
        segments: The parts of the bar.
    """

    earned: float
    decided: float
    awaiting: float
    not_run: float
    later: float
    maximum: float
    withheld: bool
    segments: tuple[Segment, ...]


def points_summary(score: Score) -> PointsSummary:
    """The points of a score, by what is known about them."""
    lines_with_points = [line for line in score.lines if line.points is not None]
    sum_known = sum(line.points or 0.0 for line in lines_with_points)
    earned = score.total if score.total is not None else sum_known
    awaiting = score.open_points
    not_run = sum(line.maximum for line in score.lines if line.id in score.not_run)
    lost = max(0.0, score.decided - earned)
    later = sum(line.maximum for line in score.lines if line.state is LineState.WITHHELD)
    open_points = max(0.0, score.maximum - earned - lost - not_run - later)
    return PointsSummary(
        earned=earned,
        decided=score.decided,
        awaiting=awaiting,
        not_run=not_run,
        later=later,
        maximum=score.maximum,
        withheld=score.total is None,
        segments=(
            Segment("earned", earned, "earned"),
            Segment("lost", lost, "not earned"),
            Segment("awaiting", open_points, "awaiting a person"),
            Segment("not-run", not_run, "not run"),
            *((Segment("not-run", later, "shown later"),) if later else ()),
        ),
    )


def headline(assignment: Assignment, evidence: Evidence, score: Score) -> str:
    """What the checks say as a whole, in a sentence or two: what is right first."""
    if score.status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR):
        return ""
    parts = _findings_by_component(assignment, evidence)
    if not parts:
        return ""
    if nothing_implemented(evidence):
        order = [name for name in parts if any(map(unimplemented, parts[name]))]
        return (
            f"Nothing is implemented yet: start with {order[0]}. "
            "Every part is tested by itself, so you can earn points part by part, in any order you like."
        )
    right = [
        name
        for name, findings in parts.items()
        if all(finding.status is Status.PASSED for finding in findings)
    ]
    missing = [name for name, findings in parts.items() if all(map(unimplemented, findings))]
    wrong = [
        name
        for name, findings in parts.items()
        if name not in missing and any(finding.status is Status.FAILED for finding in findings)
    ]
    if len(right) == len(parts):
        if any(row.loses_points for row in forbidden_rows(assignment, evidence)):
            return (
                "Every automatic check passed, but a part that this assignment does not allow costs points."
            )
        do = (
            f"all {len(parts)} parts do what they should"
            if len(parts) > 1
            else f"{right[0]} does what it should"
        )
        passed = f"Every automatic check passed: {do}."
        return " ".join([passed, *_remark_sentences(parts)])
    sentences = [f"{listed(right, 9)} {'is' if len(right) == 1 else 'are'} entirely right."] if right else []
    if wrong:
        sentences.append(f"{listed(wrong, 9)} {'needs' if len(wrong) == 1 else 'need'} another look.")
    if missing:
        sentences.append(f"Not implemented yet: {listed(missing, 9)}.")
    return " ".join([*sentences, *_remark_sentences(parts)])


def _remark_sentences(parts: Mapping[str, Sequence[Finding]]) -> list[str]:
    """What is said of passed checks: what a person looks at, and advice; at most a sentence each."""
    flagged = [name for name, findings in parts.items() if any(finding.flagged for finding in findings)]
    advised = [name for name, findings in parts.items() if any(finding.is_advice for finding in findings)]
    sentences = []
    if flagged:
        sentences.append(f"A person will take a look at {listed(flagged, 9)}, which costs no points.")
    if advised:
        sentences.append(f"There is advice on {listed(advised, 9)}, which costs no points.")
    return sentences


def nothing_implemented(evidence: Evidence) -> bool:
    """Whether no check of any part passed, and every failed one says that its stub is not written yet."""
    of_parts = [finding for finding in evidence.findings if finding.component != SUBMISSION]
    failed = [finding for finding in of_parts if finding.status is Status.FAILED]
    return (
        bool(failed)
        and all(map(unimplemented, failed))
        and not any(finding.status is Status.PASSED for finding in of_parts)
    )


def banners(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[Banner, ...]:
    """What changes how the points are to be read, the most serious first."""
    made: list[Banner] = []
    reason = score.reason or evidence.reason
    if score.status is GradeStatus.REFUSED:
        text = reason or "No file in it can be read as this assignment's code."
        title = "Nothing in this submission could be graded"
        if score.closed:
            title += ": 0 points"
        elif not score.lacks_total:
            title = "The code could not be graded; the rest counts"
        made.append(Banner("note" if score.total else "warning", title, text))
    if score.status is GradeStatus.ENGINE_ERROR:
        what = "people gave the points" if not score.lacks_total else "it will be graded again"
        message = f"It costs you nothing, and you need not do anything: {what}. {reason}"
        made.append(Banner("warning", "The grader failed, not you", message.strip()))
    if score.status is GradeStatus.INCOMPLETE:
        roles = listed([str(role) for role in evidence.missing])
        message = reason or f"Not handed in: {roles}."
        if evidence.findings:
            message += " Everything else was graded and is shown below."
        if evidence.absent:
            title = "Nothing was handed in" + (": 0 points" if score.closed else "")
        elif score.closed:
            title = "A required file is missing: 0 points"
        elif score.lacks_total:
            title = "A required file is missing, so the total is withheld"
        else:
            title = "A required file is missing; the total counts all the same"
        made.append(Banner("note" if score.total else "warning", title, message))
    if any(inquiry.is_open and inquiry.explained is None for inquiry in score.inquiries):
        text = "It is below, with the line that it is about. A question takes no points."
        made.append(Banner("note", "You are asked a question about your work", text))
    made += _oral_banners(score)
    made += _circumstances(evidence, score)
    return tuple(made)


def _oral_banners(score: Score) -> list[Banner]:
    """That an oral check is pending, never why; or what a person ruled after it."""
    if score.awaits_oral:
        return [Banner("note", "An oral check is pending", "The total is shown once it is done.")]
    if score.oral is None or score.status is not GradeStatus.GRADED or not score.edits:
        return []
    if score.closed:
        return [Banner("warning", "After the oral check: 0 points", score.reason)]
    return [Banner("note", "After the oral check, the total counts", score.reason)]


def _circumstances(evidence: Evidence, score: Score) -> list[Banner]:
    made: list[Banner] = []
    if any(training.outcome is TrainingOutcome.BUDGET for training in evidence.trainings):
        made.append(
            Banner(
                "note",
                "The grader's time limit stopped the training",
                "Your accuracy is unknown, which is not zero: a person decides these points.",
            )
        )
    if evidence.attestation.weak:
        made.append(
            Banner(
                "note",
                "This grade is unofficial",
                "It was made without the isolation that official grades require. "
                + " ".join(evidence.attestation.missing),
            )
        )
    if evidence.partial:
        made.append(
            Banner(
                "note",
                "A single file was graded",
                "The other files of the assignment were not looked for, so this result is partial.",
            )
        )
    if score.accepted is not None:
        text = f"{named(score.accepted.file)}: {score.accepted.why}"
        made.append(Banner("note", "A file that was set aside counts as your report", text))
    if score.tries is not None:
        made.append(Banner("note", "Feedback before the deadline", score.tries.reason))
    if score.resubmission is not None:
        made.append(_resubmission(score.resubmission))
    record = score.late
    if record is None or (score.closed and evidence.absent):
        return made
    if record.how_late:
        due = f"{'Your own deadline' if record.extended else 'Deadline'} {stamp(record.due)}"
        text = " ".join((f"{due}, received {stamp(record.received_at)}.", record.reason))
        made.append(Banner("note", f"Handed in {record.how_late}", text))
    elif record.state == "unknown" and record.asked:
        made.append(Banner("note", "Marked as late", record.reason))
    return made


def _resubmission(record: ResubmissionRecord) -> Banner:
    """What a submission after the deadline came to, with the rule."""
    titles = {
        ResubmissionState.COUNTED: "Your resubmission counts",
        ResubmissionState.UNUSABLE: "Your resubmission could not be graded",
        ResubmissionState.TOO_LATE: "A submission came too late to count",
    }
    until, received_at = stamp(record.until), stamp(record.received_at)
    sentence = f"Resubmissions count until {until}; this one was received {received_at}. {record.reason}"
    return Banner("note", titles[record.state], sentence)


def _findings_by_component(assignment: Assignment, evidence: Evidence) -> dict[str, list[Finding]]:
    """Component -> its findings, in the assignment's order, without the submission itself."""
    parts: dict[str, list[Finding]] = {component.name: [] for component in assignment.components}
    for finding in evidence.findings:
        if finding.component != SUBMISSION:
            parts.setdefault(finding.component, []).append(finding)
    return {name: findings for name, findings in parts.items() if findings}


def points_sentence(summary: PointsSummary) -> str:
    """The points in a sentence: `41.5 of 65 decided points, 35 awaiting a person`."""
    sentence = f"{points(summary.earned)} of {points(summary.decided)} decided points"
    if summary.awaiting:
        sentence += f", {points(summary.awaiting)} awaiting a person"
    if summary.not_run:
        sentence += f", {points(summary.not_run)} not run"
    if summary.later:
        sentence += f", {points(summary.later)} shown later"
    return sentence
