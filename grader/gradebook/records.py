"""Converts rows of the gradebook to runs, edits, totals and evidence (JSON text), and back.

The conversion is exact in both directions. Evidence of older versions is converted, only here, each time it
is read; old records are never rewritten. Facts that those versions only stated in words are recognized by
these words here, and nowhere else. It neither reads nor adds rows itself: `statements` and `gradebook` do.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from sqlalchemy import Row

from grader.domain.edit import (
    Accepted,
    Claimed,
    Edit,
    Extended,
    InquiryAsked,
    InquiryExplained,
    InquirySettled,
    InTime,
    Marked,
    OrallyChecked,
    OwnerAssigned,
    PickedForOral,
    Received,
    RegradeAnswered,
    RegradeAsked,
    Released,
    Reviewed,
    Ruled,
    RunChosen,
    Waived,
)
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence, FindingKind, Status
from grader.domain.run_facts import RunFacts
from grader.domain.score import Total
from grader.files.stored_records import validator

_CELL = re.compile(r"cell \d{1,9}")
_LOOK = "a person should look"  # with these words, a note in format 1 asks for a person
_FINDING_KINDS = {kind.value for kind in FindingKind}


def converted(evidence: Any, form: int) -> Any:
    """A record of an older format as one of the newest.

    Args:
        evidence: The parsed JSON, which is not changed.
        form: The number of its format.

    Raises:
        ValueError: There is no such format, or the record does not have it.
    """
    if not 0 < form <= len(_STEPS) + 1:
        raise ValueError("not a format that this version of the grader knows")
    try:
        for step in _STEPS[form - 1 :]:
            evidence = step(evidence)
    except (AttributeError, TypeError) as error:
        raise ValueError("not what the grader wrote") from error
    return evidence


def _with_facts(evidence: dict[str, Any]) -> dict[str, Any]:
    """Convert from format 1, in which only words showed the kinds of notes, claims and findings."""
    converted_evidence = {
        **evidence,
        "notes": _notes(evidence.get("notes")),
        "findings": [_finding(finding) for finding in evidence.get("findings") or ()],
    }
    if evidence.get("training") is not None:
        converted_evidence["training"] = {
            **evidence["training"],
            "notes": _notes(evidence["training"].get("notes")),
        }
    if evidence.get("claim") is not None:
        source = evidence["claim"].get("source", "")
        converted_evidence["claim"] = {**evidence["claim"], "cell": source if _CELL.fullmatch(source) else ""}
    return converted_evidence


def _notes(notes: list[str] | None) -> list[dict[str, Any]]:
    return [{"text": text, "ask_person": _LOOK in text} for text in notes or ()]


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    """Convert a finding, whose `diagnosis` was the id of a mistake, a policy (if passed), or a kind."""
    diagnosis = finding.get("diagnosis")
    if finding.get("status") == Status.PASSED:
        return {**finding, "diagnosis": None, "policy": diagnosis or "" if finding.get("message") else None}
    if diagnosis in _FINDING_KINDS:
        return {**finding, "diagnosis": None, "kind": diagnosis}
    return finding


def _with_components_of_figures(evidence: dict[str, Any]) -> dict[str, Any]:
    """Convert from format 2, in which a figure's `component` was called `check`."""
    figures = [
        {"component": figure.get("check"), "image": figure.get("image")}
        for figure in evidence.get("figures") or ()
    ]
    return {**evidence, "figures": figures}


_STEPS: tuple[Callable[[Any], Any], ...] = (_with_facts, _with_components_of_figures)
NEWEST = len(_STEPS) + 1


# --- evidence file ---------------------------------------------------------------------------------------


def evidence_text(evidence: Evidence) -> str:
    """The evidence as JSON, with `NaN` and `Infinity` as Python writes them (a diverged loss is one).

    Raises:
        EngineError: A field's value is not of its type.
    """
    try:
        content = validator(Evidence).dump_python(evidence, mode="json", warnings=False)
    except PydanticSerializationError:
        raise EngineError(
            f"{evidence.student_id}: the evidence holds a value that is not of its type. "
            "Report this to the grader's authors."
        ) from None
    record = {"format": NEWEST, "evidence": content}
    try:
        return to_json(record).decode("utf-8")
    except PydanticSerializationError:  # a lone surrogate, which UTF-8 cannot hold: slower, by its number
        return json.dumps(record)


def evidence_from(text: str) -> Evidence:
    """The evidence in a text of `evidence_text`, of this version or an older one.

    Raises:
        ValueError: The text is something else.
    """
    content: Any = json.loads(text)
    if not isinstance(content, dict) or type(content.get("format")) is not int:
        raise ValueError("not a record of the grader")
    evidence = converted(content.get("evidence"), content["format"])
    validated: Evidence = validator(Evidence).validate_python(evidence)
    return validated


def facts_text(evidence: Evidence) -> str:
    """The facts in evidence, as JSON."""
    text: bytes = validator(RunFacts).dump_json(RunFacts.of(evidence))
    return text.decode("utf-8")


def facts_in(text: str | None) -> RunFacts | None:
    """The facts in a text of `facts_text`; None where the evidence itself must be read."""
    try:
        facts: RunFacts | None = validator(RunFacts).validate_json(text) if text else None
    except ValueError:  # of another version
        return None
    return facts


def evidence_in(row: Any) -> Evidence | None:
    """The evidence in a row of `runs`; None if it is damaged."""
    try:
        evidence = evidence_from(row.evidence)
    except (ValueError, RecursionError):
        return None
    return evidence if evidence.student_id == row.student_id else None


def read_evidence(row: Any) -> Evidence:
    """The evidence in a row of `runs`.

    Raises:
        UsageError: It is damaged.
    """
    evidence = evidence_in(row)
    if evidence is None:
        raise damaged(f"run {row.number} of '{row.student_id}'", "Grade that submission again.")
    return evidence


def damaged(record: str, remedy: str = "Put back a copy of the gradebook.") -> UsageError:
    """The error for a record that cannot be read.

    Args:
        record: Which one: `edit 7`.
        remedy: What to do about it, in a sentence.
    """
    return UsageError(f"The gradebook's {record} is damaged: it is not what the grader wrote. {remedy}")


# --- records ---------------------------------------------------------------------------------------------


# the kind of each class of edits in rows; never changed, since old rows hold it
_KINDS: dict[str, type[Edit]] = {
    "mark": Marked,
    "waiver": Waived,
    "ruling": Ruled,
    "claim": Claimed,
    "received": Received,
    "in_time": InTime,
    "extension": Extended,
    "run": RunChosen,
    "listing": OwnerAssigned,
    "release": Released,
    "acceptance": Accepted,
    "oral_pick": PickedForOral,
    "oral_outcome": OrallyChecked,
    "regrade_asked": RegradeAsked,
    "regrade_answered": RegradeAnswered,
    "review": Reviewed,
    "inquiry_asked": InquiryAsked,
    "inquiry_explained": InquiryExplained,
    "inquiry_settled": InquirySettled,
}
_SHARED = {field.name for field in fields(Edit)}  # in columns of their own
NOTHING = "nothing_handed_in"  # the status of a run without a submission


@dataclass(frozen=True)
class RunRecord:
    """A run, without its evidence.

    Attributes:
        number: 1 for the student's first.
        who: Who ran the command; empty if unknown.
        status: Why it could not be graded; None if it could; NOTHING.
        engine: The engine's version.
        data_digest: Of the images and their split; empty if nothing was to be trained, None in records of
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
    """A moment as stored: ISO 8601 in UTC, which sorts by time."""
    return when.astimezone(UTC).isoformat()


def kind_of(edits: type[Edit]) -> str:
    """The kind of a class of edits in rows."""
    return next(name for name, edit_class in _KINDS.items() if edit_class is edits)


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
    """The edit in a row.

    Raises:
        UsageError: Its kind is unknown to this version, or its content is not a valid edit.
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
        raise damaged(f"edit {row.id}") from None
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
        "tokens": total.late_days_used,
    }


def total_of(row: Row[Any]) -> Total:
    """The total in a row."""
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
        late_days_used=row.tokens,
    )


def run_of(row: Row[Any]) -> RunRecord:
    """The run in a row."""
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
