"""The result of a submission: what its evidence says in sentences, and the student's other attempts.

It holds evidence together with its score. It decides which findings of a component are shown first, by
their causes. It words the notes on prying code and on trainings beyond what the assignment allows, and
says which students handed in together and how long the stages took. It holds the student's attempts, which
the rule on resubmissions compares, and the late days used for other assignments. It gives no points, changes
no evidence, and never decides which attempt counts: `grader.scoring` does.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from grader.domain.analyzed_program import Note
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.formatting import counted
from grader.domain.measure import Measure
from grader.domain.program_run import Pried, Prying, Rehearsal, Watched
from grader.domain.score import Score


@dataclass(frozen=True)
class ReportedCause:
    """A finding whose message is shown.

    Attributes:
        others: The findings whose messages are not shown: they say the same, or are folded under it.
    """

    finding: Finding
    others: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the shown one first."""
        return (self.finding, *self.others)

    @property
    def others_in_words(self) -> str:
        """The number of others: `3 more checks fail for this reason`; empty if there are none."""
        count = len(self.others)
        if not count:
            return ""
        match self.finding.status:
            case Status.FAILED:
                return counted(count, "more check fails for this reason", "more checks fail for this reason")
            case Status.SKIPPED:
                return counted(
                    count,
                    "more check was not tried for this reason",
                    "more checks were not tried for this reason",
                )
            case Status.ERRORED:
                return counted(
                    count,
                    "more check is undecided for this reason",
                    "more checks are undecided for this reason",
                )
            case Status.PASSED:
                return counted(count, "more check has this remark", "more checks have this remark")


def reported_causes(findings: Sequence[Finding]) -> tuple[ReportedCause, ...]:
    """The findings of one component that are shown, in their order.

    A folded finding is shown under the one that has its cause, if that one exists and did not pass. A finding
    with the same message and status as an earlier one is shown under the earlier one.

    Args:
        findings: The findings with something to say.
    """
    not_passed = {finding.check for finding in findings if finding.status is not Status.PASSED}
    heads = {
        finding.check
        for finding in findings
        if finding.check in not_passed and finding.because not in not_passed
    }
    heads_of_groups = [finding for finding in findings if finding.because not in heads]
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in heads_of_groups:
        text = finding.message or (finding.hint, finding.where, finding.label)
        groups.setdefault((text, finding.status, finding.blame, finding.kind), []).append(finding)
    return tuple(ReportedCause(group[0], _others(group, heads, findings)) for group in groups.values())


def _others(
    group: Sequence[Finding], heads: Collection[str], findings: Sequence[Finding]
) -> tuple[Finding, ...]:
    """The other findings that are shown under the first of a group, in the order of all findings."""
    checks_of_group = {finding.check for finding in group}
    causes = checks_of_group & set(heads)
    return tuple(
        finding
        for finding in findings
        if finding is not group[0] and (finding.check in checks_of_group or finding.because in causes)
    )


# --- watch notes -----------------------------------------------------------------------------------------


PRYING_WORDS = {
    Prying.DYNAMIC_CODE: "executes text or code that the source does not show",
    Prying.CODE_OBJECTS: "reads, makes or replaces the code of functions",
    Prying.FRAMES: "looks at running functions and their variables",
    Prying.OBJECTS: "asks Python's collector for objects",
    Prying.UNPICKLING: "unpickles data that names what is to be called",
    Prying.LIBRARY_SOURCE: "opens a library's file",
    Prying.SECOND_COPY: "executes a library's module a second time",
    Prying.MEMORY: "reaches memory or descriptors past Python",
}


def watch_notes(evidence: Evidence) -> tuple[Note, ...]:
    """What a person should look at: where code pried, and which stages were not watched reliably."""
    sentences = looks(Watched((), evidence.pried, evidence.unproven))
    return tuple(Note(sentence, ask_person=True) for sentence in sentences)


def looks(watched: Watched) -> tuple[str, ...]:
    """The sentences about what the watch saw in one submission's workers."""
    pried = dict.fromkeys(map(pried_sentence, watched.pried))
    return (*pried, *map(unproven_sentence, watched.unproven))


def pried_sentence(pried: Pried) -> str:
    """`homework.py:41: the code executes text ...; a person should look at what it does.`"""
    where = f"{pried.place}: " if pried.place is not None else ""
    start = "when it ran, the code" if where else "When it ran, the code"
    return f"{where}{start} {PRYING_WORDS[pried.kind]} ({pried.stage}); a person should look at what it does."


def unproven_sentence(stage: str) -> str:
    """The sentence that it is not known what the code used at a stage."""
    return (
        f"After {stage}, the watch for forbidden parts did not answer as it should: what the code used is "
        "not known. A person should look at the source."
    )


# --- allowed training ------------------------------------------------------------------------------------


MOST_STEPS = 2.0  # for each batch: a student's own batches may be half as large as the loader's


def beyond_what_is_allowed(
    measure: Measure, rehearsal: Rehearsal | None, epochs: int = 0, steps: float | None = None
) -> tuple[str, ...]:
    """Sentences about a training beyond what the assignment allows, or of which that is not known.

    Args:
        rehearsal: The trial of the training; None: there was none.
        epochs: The number of epochs trained.
        steps: The optimizer steps for each batch, in the epoch with most of them; None: not counted.
    """
    sentences = []
    size = rehearsal.multiply_adds if rehearsal is not None else None
    most = measure.most_multiply_adds
    was_trained = epochs > 0 or (rehearsal is not None and bool(rehearsal.stages))
    if most is not None and size is None and was_trained:
        sentences.append(
            f"The model's multiply-adds could not be counted; at most {most / 1e6:g} million per image are "
            "allowed."
        )
    if most is not None and size is not None and size > most:
        sentences.append(
            f"The model takes {size / 1e6:.1f} million multiply-adds per image; at most "
            f"{most / 1e6:g} million are allowed."
        )
    planned = max(epochs, (rehearsal.epochs or 0) if rehearsal is not None else 0)
    if measure.most_epochs is not None and planned > measure.most_epochs:
        sentences.append(
            f"It is trained for {counted(planned, 'epoch')}; at most {measure.most_epochs} are allowed."
        )
    asked_for = measure.call.epochs if measure.call is not None else None
    is_bounded = measure.most_epochs is not None or asked_for is not None
    if is_bounded and steps is not None and steps > MOST_STEPS:
        sentences.append(
            f"It takes {steps:.1f} optimizer steps for each batch of an epoch: each epoch is worth about "
            f"{steps:.0f}."
        )
    return tuple(sentences)


# --- teams -----------------------------------------------------------------------------------------------


def shared_by(all_evidence: Iterable[Evidence]) -> dict[str, tuple[str, ...]]:
    """Student -> all members of the team with the same submission, sorted, but not those with their own.

    Args:
        all_evidence: The evidence about the submissions that count.
    """
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for evidence in all_evidence:
        if evidence.team:
            groups.setdefault((evidence.team, evidence.submission_digest), []).append(evidence.student_id)
    return {
        student_id: tuple(sorted(students))
        for students in groups.values()
        if len(students) > 1
        for student_id in students
    }


def team_mates(all_evidence: Iterable[Evidence]) -> frozenset[str]:
    """The students whose submission is already listed under the first of their team by id."""
    return frozenset(student for student, team in shared_by(all_evidence).items() if student != team[0])


# --- result ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """A submission's evidence and its score.

    Attributes:
        examined_before: Nothing was done, because an earlier run had examined it.
    """

    evidence: Evidence
    score: Score
    examined_before: bool = False


# --- time of the stages ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StageTime:
    """The wall-clock seconds of one stage, over the submissions that went through it.

    Attributes:
        share: Of the time of all stages, 0 to 1.
    """

    stage: str
    submissions: int
    total: float
    median: float
    longest: float
    share: float


def stage_times(all_evidence: Iterable[Evidence]) -> tuple[StageTime, ...]:
    """One row per stage, in the order in which a submission goes through them."""
    seconds_by_stage: dict[str, list[float]] = {}
    for evidence in all_evidence:
        for stage, seconds in stage_seconds(evidence).items():
            seconds_by_stage.setdefault(stage, []).append(seconds)
    total = sum(map(sum, seconds_by_stage.values()))
    return tuple(
        StageTime(
            stage,
            len(seconds),
            sum(seconds),
            median(seconds),
            max(seconds),
            sum(seconds) / total if total else 0.0,
        )
        for stage, seconds in seconds_by_stage.items()
    )


def stage_seconds(evidence: Evidence) -> dict[str, float]:
    """Stage -> the wall-clock seconds of one submission."""
    return {stage: value for stage, value in (evidence.seconds or {}).items() if math.isfinite(value)}


# --- student history -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """One submission of the student, as it was examined.

    Attributes:
        evidence: Of the run that counted while this was the newest attempt.
        number: That run's number.
        first_run: The number of the first run of the same files.
    """

    evidence: Evidence
    number: int
    first_run: int

    @property
    def digest(self) -> str:
        """Of the submitted files."""
        return self.evidence.submission_digest


@dataclass(frozen=True)
class History:
    """What a score depends on beside the evidence and what people decided.

    Attributes:
        attempts: The student's attempts for this assignment, in the order in which they were examined first;
            the one that is scored is among them as soon as it is in the gradebook.
        late_days: Other assignment of the same gradebook -> the late days that the student used there.
    """

    attempts: tuple[Attempt, ...] = ()
    late_days: tuple[tuple[str, int], ...] = ()

    def first_run(self, evidence: Evidence) -> int | None:
        """The number of the first run of the same files; None where they are not in the gradebook yet."""
        numbers = (
            attempt.first_run for attempt in self.attempts if attempt.digest == evidence.submission_digest
        )
        return next(numbers, None)


NO_HISTORY = History()
