"""Rows of the gradebook and what they stand for."""

import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from grader.domain.edit import (
    Accepted,
    Claimed,
    Edit,
    Extended,
    InTime,
    Listed,
    Marked,
    Received,
    Released,
    Ruled,
    RunChosen,
    Waived,
)
from grader.domain.errors import UsageError
from grader.domain.total import Total
from grader.files.typed_json import validator

# what a row calls each class of edits; never changed, since old rows say it
_KINDS: dict[str, type[Edit]] = {
    "mark": Marked,
    "waiver": Waived,
    "ruling": Ruled,
    "claim": Claimed,
    "received": Received,
    "in_time": InTime,
    "extension": Extended,
    "run": RunChosen,
    "listing": Listed,
    "release": Released,
    "acceptance": Accepted,
}
_SHARED = {field.name for field in fields(Edit)}  # in columns of their own
NOTHING = "nothing_handed_in"  # the status of a run of which there is no submission


@dataclass(frozen=True)
class RunRecord:
    """A run, without its evidence.

    Attributes:
        number: 1 for the student's first.
        who: Who ran the command; empty when that was not told.
        status: Why it could not be graded; None when it could; NOTHING.
        engine: The engine's version.
        data_digest: Of the images and their split; empty when nothing was to be trained, None in records of
            older versions.
    """

    student_id: str
    number: int
    who: str
    when: datetime
    status: str | None
    submission_digest: str
    assignment_digest: str
    engine: str
    data_digest: str | None = None


def stamp(when: datetime) -> str:
    """A moment as it is stored: ISO 8601 in UTC, which sorts as time does."""
    return when.astimezone(UTC).isoformat()


def kind_of(edits: type[Edit]) -> str:
    """What a row calls a class of edits."""
    return next(name for name, known in _KINDS.items() if known is edits)


def edit_values(assignment_id: str, edit: Edit) -> dict[str, Any]:
    """The columns of an edit."""
    content = validator(type(edit)).dump_python(edit, mode="json", exclude=_SHARED)
    return {
        "assignment_id": assignment_id,
        "student_id": edit.student_id,
        "kind": kind_of(type(edit)),
        "content": json.dumps(content),
        "run": edit.run,
        "who": edit.who,
        "at": stamp(edit.when),
        "why": edit.why,
    }


def edit_of(row: Row[Any]) -> Edit:
    """The edit that a row holds.

    Raises:
        UsageError: It is of a kind that this version does not know, or says what no edit can.
    """
    if row.kind not in _KINDS:
        raise UsageError(
            f"The gradebook holds an edit of the kind '{row.kind}', which a newer grader wrote. "
            "Update this one."
        )
    shared = {
        "who": row.who,
        "when": datetime.fromisoformat(row.at),
        "why": row.why,
        "student_id": row.student_id,
        "run": row.run,
    }
    try:
        edit: Edit = validator(_KINDS[row.kind]).validate_python({**json.loads(row.content), **shared})
    except (ValueError, TypeError):
        raise UsageError(
            f"The gradebook's edit {row.id} is damaged: it is not what the grader wrote. "
            "Put back a copy of the gradebook."
        ) from None
    return edit


def total_values(assignment_id: str, total: Total) -> dict[str, Any]:
    """The columns of a total."""
    return {
        "assignment_id": assignment_id,
        "student_id": total.student_id,
        "points": total.points,
        "decided": total.decided,
        "awaiting": total.awaiting,
        "maximum": total.maximum,
        "status": total.status,
        "who": total.who,
        "at": stamp(total.when),
        "cause": total.cause,
        "final": total.final,
        "lateness": total.lateness,
    }


def total_of(row: Row[Any]) -> Total:
    """The total that a row holds."""
    return Total(
        student_id=row.student_id,
        points=row.points,
        decided=row.decided,
        awaiting=row.awaiting,
        maximum=row.maximum,
        status=row.status,
        who=row.who,
        when=datetime.fromisoformat(row.at),
        cause=row.cause,
        final=row.final,
        lateness=row.lateness,
    )


def run_of(row: Row[Any]) -> RunRecord:
    """The run that a row holds."""
    return RunRecord(
        student_id=row.student_id,
        number=row.number,
        who=row.who,
        when=datetime.fromisoformat(row.at),
        status=row.status,
        submission_digest=row.submission_digest,
        assignment_digest=row.assignment_digest,
        engine=row.engine,
        data_digest=row.data_digest,
    )
