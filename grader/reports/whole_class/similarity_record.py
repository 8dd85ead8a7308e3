"""`similarity.json`: the pairs that a comparison listed, for the class page."""

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.domain.formatting import SPACE, counted, listed, percent

if TYPE_CHECKING:
    from grader.similarity.compared_pairs import Comparison, Pair

FILE, PAGE, TABLE = "similarity.json", "similarity.html", "similarity.csv"
LISTED = 300  # pairs that the page lists; all are in the table


class PairRecord(BaseModel):
    """Two submissions with something in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    one: str
    other: str
    before: bool = Field(description="the other is from an earlier class")
    says: str = Field(description="what they have in common, as a clause")


class SimilarityRecord(BaseModel):
    """What `grader similar` found in a class."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    assignment: str
    compared_at: datetime
    submissions: int
    threshold: float
    pairs: list[PairRecord] = Field(description="the strongest first")


def similarity_record(
    assignment_id: str, comparison: "Comparison", compared_at: datetime
) -> SimilarityRecord:
    """The record of a comparison."""
    return SimilarityRecord(
        assignment=assignment_id,
        compared_at=compared_at,
        submissions=sum(not work.before for work in comparison.works),
        threshold=comparison.threshold,
        pairs=[
            PairRecord(
                one=pair.one.student_id,
                other=pair.other.student_id,
                before=pair.other.before,
                says=in_common(pair),
            )
            for pair in comparison.pairs
        ],
    )


def pair_anchor(number: int) -> str:
    """The id of a pair on the page; empty for one that the page does not list.

    Args:
        number: Its index among all pairs; the strongest is 0.
    """
    return f"pair-{number + 1}" if number < LISTED else ""


def record_text(record: SimilarityRecord) -> str:
    """The record as JSON text."""
    return json.dumps(record.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n"


def previous_similarity(out: Path, assignment_id: str) -> SimilarityRecord | None:
    """The record in a folder of results; None where the assignment's submissions have not been compared."""
    try:
        record = SimilarityRecord.model_validate_json((out / FILE).read_bytes())
    except (OSError, ValidationError):  # the next comparison makes it again
        return None
    return record if record.assignment == assignment_id else None


def in_common(pair: "Pair") -> str:
    """What two submissions have in common, as a clause: `98 % and 97 % of their own code`."""
    shares = f"{percent(pair.code.one, 0)} and {percent(pair.code.other, 0)} of their own code"
    clauses = [shares.replace(SPACE, " ")] if pair.code.most else []
    if pair.weights is not None and pair.weights.near:
        clauses.append("the same weights" if pair.weights.identical else "nearly the same weights")
    if pair.figures:
        clauses.append(f"{counted(len(pair.figures), 'identical picture').replace(SPACE, ' ')}")
    return listed(clauses)
