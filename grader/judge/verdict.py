"""Verdicts: from the way in which a check ended to a finding, with status and blame.

`AssertionError`, `Mismatch` and a worker's end, time-out or nonsense are the student's; engine errors are
ours; `Undecided` and all else the instructor's. Blame other than the student's loses no points:
`grader.scoring.components` leaves them to a person. How many points a finding costs is decided there, not
here.

Tests: tests/judge/test_verdict.py, tests/judge/test_folding.py
"""

from collections.abc import Sequence
from dataclasses import replace

from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError, EngineError
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.judge.fault import explained
from grader.kit import Mismatch, Undecided
from grader.protocol.allocation import is_refused_memory
from grader.protocol.link import WorkerFault

MAX_MESSAGE = 3000  # characters: a worker's words may be in it
SEVERITY = [Status.ERRORED, Status.FAILED, Status.SKIPPED, Status.PASSED]


def finding(
    spec: CheckSpec, error: BaseException | None, *, where: str = "", seconds: float = 0.0
) -> Finding:
    """What a check found.

    Args:
        error: What it raised; None when it passed.
        where: The component's place in the student's file, when the error does not know better.

    Returns:
        `AssertionError` and `Mismatch` are the student's, and so are a worker's death, time-out or
        nonsense; an EngineError is ours; `Undecided` and anything else are the instructor's. Messages
        never contain pytest's own representation of a failure.
    """

    def found(
        status: Status,
        blame: Blame,
        message: str,
        hint: str = "",
        *,
        place: str = where,
        diagnosis: str | None = None,
        kind: FindingKind | None = None,
    ) -> Finding:
        return Finding(
            check=spec.id,
            component=spec.component,
            title=spec.title,
            status=status,
            blame=blame,
            diagnosis=diagnosis,
            message=message[:MAX_MESSAGE],
            hint=hint,
            where=place,
            seconds=seconds,
            kind=kind,
        )

    if error is None:
        return Finding(spec.id, spec.component, spec.title, Status.PASSED, seconds=seconds)
    if isinstance(error, Mismatch):
        saw = error.diagnosis if isinstance(error.diagnosis, FindingKind) else None
        return found(
            Status.FAILED,
            Blame.STUDENT,
            error.message,
            error.hint,
            place=error.where or where,
            diagnosis=error.diagnosis if saw is None else None,
            kind=saw,
        )
    if isinstance(error, WorkerFault):
        message = f"The check could not be finished: {explained(error)}."
        hints = {
            "time": "Look for a loop that never ends, or for work that grows with the number of calls.",
            "death": "The program ended in the middle: look for exit calls and for very large tensors.",
        }
        kinds = {"time": FindingKind.HANGS, "death": FindingKind.DIES, "nonsense": FindingKind.NONSENSE}
        return found(Status.FAILED, Blame.STUDENT, message, hints.get(error.kind, ""), kind=kinds[error.kind])
    if isinstance(error, AssertionError):
        return found(Status.FAILED, Blame.STUDENT, _authored(error) or spec.title)
    if isinstance(error, Undecided):
        told = f"A person must look: {error}"
        return found(Status.ERRORED, Blame.INSTRUCTOR, told, kind=FindingKind.UNDECIDED)
    if is_refused_memory(error):
        message = "The judge's own memory was not enough for what the submission's code answered."
        return found(Status.ERRORED, Blame.ENGINE, f"{message} It costs no points.")
    if isinstance(error, EngineError):
        return found(Status.ERRORED, Blame.ENGINE, f"{error} It costs no points.")
    if isinstance(error, CourseError):  # its words are ours; those of other exceptions may be the student's
        message = f"The check itself failed ({spec.file}): {error} It costs no points."
        return found(Status.ERRORED, Blame.INSTRUCTOR, message)
    return found(
        Status.ERRORED,
        Blame.INSTRUCTOR,
        f"The check itself failed ({type(error).__name__} in {spec.file}). It costs no points.",
    )


def skipped(
    spec: CheckSpec,
    reason: str,
    *,
    where: str = "",
    blame: Blame = Blame.STUDENT,
    because: str | None = None,
) -> Finding:
    """A check that was not tried, with the reason.

    Args:
        because: The check that has the cause, where one has it.
    """
    status = Status.SKIPPED if blame is Blame.STUDENT else Status.ERRORED
    return Finding(
        spec.id, spec.component, spec.title, status, blame, None, reason, "", where, because=because
    )


def flagged(found: Finding, flags: Sequence[tuple[str, str]], where: str) -> Finding:
    """A finding that passed and yet has something for a person to look at.

    Args:
        flags: (policy, sentence); the first policy is named, every sentence is told.
        where: The component's place in the student's file.
    """
    if found.status is not Status.PASSED or not flags:
        return found
    sentences = " ".join(dict.fromkeys(sentence for _, sentence in flags))
    return replace(found, policy=flags[0][0], message=sentences, where=where)


def worst(findings: Sequence[Finding]) -> Finding:
    """The worst of a parametrized check's findings; of those that passed, one that a person looks at."""
    return min(findings, key=lambda found: (SEVERITY.index(found.status), not found.flagged))


def _authored(error: AssertionError) -> str:
    """The message that the check's author wrote, without what pytest's rewriting adds."""
    text = str(error).split("\nassert ")[0]
    return "" if text.startswith("assert ") else text
