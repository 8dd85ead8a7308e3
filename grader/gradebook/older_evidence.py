"""Evidence as older versions of the grader kept it, as this one keeps it.

Old records are never rewritten: they are converted each time that they are read, and here alone. What those
versions said in words only is known by these words here, and nowhere else.
"""

import re
from collections.abc import Callable
from typing import Any

from grader.domain.evidence import FindingKind, Status

_CELL = re.compile(r"cell \d{1,9}")
_LOOK = "a person should look"  # by which format 1 tells that a note asks for a person
_KINDS = {kind.value for kind in FindingKind}


def converted(evidence: Any, form: int) -> Any:
    """A record of an older format as one of the newest.

    Args:
        evidence: As JSON has it; not changed.
        form: The number of its format.

    Raises:
        ValueError: There is no such format, or it is no such record.
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
    """From format 1, in which notes, claims and findings told by their words what they were."""
    made = {
        **evidence,
        "notes": _notes(evidence.get("notes")),
        "findings": [_finding(finding) for finding in evidence.get("findings") or ()],
    }
    if evidence.get("training") is not None:
        made["training"] = {**evidence["training"], "notes": _notes(evidence["training"].get("notes"))}
    if evidence.get("claim") is not None:
        source = evidence["claim"].get("source", "")
        made["claim"] = {**evidence["claim"], "cell": source if _CELL.fullmatch(source) else ""}
    return made


def _notes(notes: list[str] | None) -> list[dict[str, Any]]:
    return [{"text": text, "ask_person": _LOOK in text} for text in notes or ()]


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    """Its `diagnosis` was the id of a mistake, of a policy (of a check that passed), or a kind."""
    diagnosis = finding.get("diagnosis")
    if finding.get("status") == Status.PASSED:
        return {**finding, "diagnosis": None, "policy": diagnosis or "" if finding.get("message") else None}
    if diagnosis in _KINDS:
        return {**finding, "diagnosis": None, "kind": diagnosis}
    return finding


_STEPS: tuple[Callable[[Any], Any], ...] = (_with_facts,)
NEWEST = len(_STEPS) + 1
