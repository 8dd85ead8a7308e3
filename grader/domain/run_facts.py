"""What is asked of all runs of a class at once: whether each is known, and whose upload it was."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from grader.domain.assignment_versions import Value
from grader.domain.evidence import Evidence
from grader.domain.submission import Origin


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run that are needed without its evidence, which takes a hundred times as long to read.

    Attributes:
        absent, partial, variant, attempt, data_digest: As in the evidence.
        isolation: The level of the attestation.
        out_of_time: Whether our limit stopped some training.
    """

    submission_digest: str
    assignment_digest: str
    engine: str
    status: str | None
    origin: Origin
    absent: bool = False
    partial: bool = False
    variant: Mapping[str, Value] = field(default_factory=dict)
    isolation: str = ""
    attempt: int | None = None
    data_digest: str = ""
    out_of_time: bool = False

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """The facts in evidence."""
        return cls(
            submission_digest=evidence.submission_digest,
            assignment_digest=evidence.assignment_digest,
            engine=evidence.engine,
            status=evidence.status,
            origin=evidence.origin,
            absent=evidence.absent,
            partial=evidence.partial,
            variant=evidence.variant,
            isolation=evidence.attestation.level,
            attempt=evidence.attempt,
            data_digest=evidence.data_digest,
            out_of_time=any(training.stopped for training in evidence.trainings),
        )
