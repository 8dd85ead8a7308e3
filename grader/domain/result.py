"""What one submission came to."""

from dataclasses import dataclass

from grader.domain.evidence import Evidence
from grader.domain.score import Score


@dataclass(frozen=True)
class Result:
    """A submission's evidence and what it is worth.

    Attributes:
        known: Nothing was done: an earlier run had found it out.
    """

    evidence: Evidence
    score: Score
    known: bool = False
