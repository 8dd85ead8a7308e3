"""Records of a class hold equal parts once, and stay equal."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.domain.evidence import Evidence, LayerSummary, Status
from grader.domain.submission import Role
from grader.gradebook import SharedParts
from grader.gradebook.evidence_file import evidence_from, evidence_text


@pytest.fixture
def record(class_evidence: Callable[..., Any]) -> Evidence:
    layers = tuple(LayerSummary(f"blocks.{index}", "Linear", 64, 1) for index in range(5))
    found: Evidence = replace(
        class_evidence("400101201"), layers=layers, source={"homework.py": "import torch\n"}
    )
    return found


def test_equal_parts_are_held_once(record: Evidence) -> None:
    other = replace(evidence_from(evidence_text(record)), student_id="400101202")
    # a time is hardly ever the same twice
    other = replace(other, findings=tuple(replace(one, seconds=9.0) for one in other.findings))
    shared = SharedParts()
    first, second = shared.of(record), shared.of(other)
    assert (first, second) == (record, other)
    assert second.layers is first.layers and other.layers is not record.layers
    pairs = list(zip(first.findings, second.findings, strict=True))
    assert pairs and all(one.title is two.title and one is not two for one, two in pairs)


def test_what_can_change_stays_its_own(record: Evidence) -> None:
    shared = SharedParts()
    first, second = (shared.of(evidence_from(evidence_text(record))) for _ in range(2))
    assert first.source == second.source and first.source is not second.source


def test_a_word_does_not_take_the_place_of_a_member_that_equals_it(record: Evidence) -> None:
    shared = SharedParts()
    shared.of(replace(record, code_file="passed", engine="code"))
    again = shared.of(replace(record, missing=(Role.CODE,)))
    assert all(isinstance(one.status, Status) for one in again.findings)
    assert isinstance(again.missing[0], Role)
