"""Evidence of older versions is read as what it meant, by the words that these versions kept."""

import json
from dataclasses import replace
from typing import Any

import pytest

from grader.domain.analyzed_program import Note
from grader.domain.evidence import Blame, Figure, Finding, FindingKind, Status
from grader.gradebook.records import NEWEST, converted, evidence_from, evidence_text

LOOK = "a person should look"


def old(*, form: int = 1, **fields: Any) -> str:
    """A record of an older format."""
    evidence = {
        "student_id": "400101204",
        "assignment_id": "vit_defects",
        "submission_digest": "ab12",
        "graded_at": "2026-01-02T00:00:00Z",
        **fields,
    }
    return json.dumps({"format": form, "evidence": evidence})


def finding(status: str, diagnosis: str | None, message: str = "") -> dict[str, Any]:
    """A finding as format 1 kept it."""
    return {
        "check": "shape",
        "component": "ViT",
        "title": "Shapes.",
        "status": status,
        "blame": None if status == "passed" else "student",
        "diagnosis": diagnosis,
        "message": message,
    }


@pytest.mark.parametrize(
    ("kept", "kind", "policy", "diagnosis"),
    [
        (finding("failed", "not_implemented"), FindingKind.NOT_IMPLEMENTED, None, None),
        (finding("failed", "hangs"), FindingKind.HANGS, None, None),
        (finding("failed", "dies"), FindingKind.DIES, None, None),
        (finding("failed", "nonsense"), FindingKind.NONSENSE, None, None),
        (finding("failed", "broken_cell"), FindingKind.BROKEN_CELL, None, None),
        (finding("failed", "missing_name"), FindingKind.MISSING_NAME, None, None),
        (finding("errored", "undecided"), FindingKind.UNDECIDED, None, None),
        (finding("failed", "missing_scale", "It hangs."), None, None, "missing_scale"),
        (finding("failed", None, "It hangs."), None, None, None),
        (finding("passed", "fixed_positions", "They are fixed."), None, "fixed_positions", None),
        (finding("passed", None, "They are fixed."), None, "", None),
        (finding("passed", None), None, None, None),
    ],
)
def test_what_a_diagnosis_meant_is_a_field_of_its_own(
    kept: dict[str, Any], kind: FindingKind | None, policy: str | None, diagnosis: str | None
) -> None:
    [found] = evidence_from(old(findings=[kept])).findings
    assert (found.kind, found.policy, found.diagnosis) == (kind, policy, diagnosis)
    assert found.label == kept["diagnosis"], "`results.json` says what it said"
    assert found.flagged == (kept["status"] == "passed" and bool(kept["message"]))


def test_a_note_asks_for_a_person_where_its_words_did() -> None:
    told = ["Magics were set aside.", f"homework.py:3: 9 kB are written out here; {LOOK} why."]
    claimed = f"The training ended with an exception that speaks of memory; {LOOK} at the line."
    found = evidence_from(old(notes=told, training={"outcome": "failed", "notes": [claimed]}))
    assert found.notes == (Note(told[0]), Note(told[1], ask_person=True))
    assert found.training.notes == (Note(claimed, ask_person=True),)


@pytest.mark.parametrize(
    ("source", "cell"), [("cell 12", "cell 12"), ("cell 12.pdf, page 3", ""), ("report.pdf, page 3", "")]
)
def test_a_claim_in_an_output_has_its_cell(source: str, cell: str) -> None:
    claim = evidence_from(old(claim={"accuracy": 0.8, "source": source, "text": ""})).claim
    assert claim is not None and (claim.source, claim.cell) == (source, cell)


@pytest.mark.parametrize("form", [1, 2])
def test_a_figure_is_a_components(form: int) -> None:
    kept = [{"check": "plot_confusion_matrix", "image": "f0.png"}]
    assert evidence_from(old(form=form, figures=kept)).figures == (Figure("plot_confusion_matrix", "f0.png"),)
    assert evidence_from(old(form=form)).figures == ()


def test_a_record_that_was_read_is_written_in_the_newest_format() -> None:
    found = evidence_from(old(notes=["A note."], findings=[finding("failed", "hangs")]))
    text = evidence_text(found)
    assert json.loads(text)["format"] == NEWEST
    assert evidence_from(text) == found


def test_in_the_newest_format_words_mean_nothing() -> None:
    kept = Finding("a", "ViT", "A.", Status.FAILED, Blame.STUDENT, "hangs")
    found = evidence_from(evidence_text(replace(evidence_from(old()), findings=(kept,))))
    assert found.findings == (kept,) and found.findings[0].kind is None


@pytest.mark.parametrize("form", [0, -1, NEWEST + 1])
def test_a_format_that_does_not_exist_is_refused(form: int) -> None:
    with pytest.raises(ValueError):
        converted({}, form)


@pytest.mark.parametrize(
    "damaged", [[], "text", {"notes": [1]}, {"findings": ["x"]}, {"training": 3}, {"figures": ["x"]}]
)
def test_what_is_no_record_is_refused(damaged: object) -> None:
    with pytest.raises(ValueError):
        converted(damaged, 1)
