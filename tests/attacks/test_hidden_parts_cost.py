"""A forbidden part that is hidden costs what it costs in the open."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from grader.analysis.forbidden_uses import run_time_uses
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import ComponentScore
from grader.scoring import score

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUNS = ("Attention", "PreNorm")


@pytest.fixture
def shares(
    attack_modules: Callable[[str], ModuleType],
    judged_text: Any,
    with_attack: Callable[[str], str],
    attacked: Assignment,
) -> Callable[[int], dict[str, ComponentScore]]:
    """What the components of an attack's submission are worth."""

    def of(number: int) -> dict[str, ComponentScore]:
        [attack] = [each for each in attack_modules("attack").attacks() if each.number == number]
        found, said = judged_text(with_attack(attack.source), RUNS)
        uses = run_time_uses(attacked, found, found.forbidden, said.watched.reached)
        evidence = Evidence("1", attacked.id, "", NOW, findings=said.findings)
        evidence = replace(evidence, forbidden=(*found.forbidden, *uses), unproven=said.watched.unproven)
        [line] = [line for line in score(attacked, evidence).lines if line.id == "model"]
        return {share.component: share for share in line.components}

    return of


@pytest.mark.sampled(6)
@pytest.mark.parametrize("number", [130, 131, 132, 133, 136, 138])
def test_what_is_hidden_costs_its_points(shares: Any, number: int) -> None:
    found = shares(number)
    assert found["Attention"].points == 0.0
    assert "without PyTorch's own multi-head attention" in found["Attention"].reason
    assert found["PreNorm"].points == found["PreNorm"].maximum


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [134, 135])
def test_what_is_only_flagged_keeps_its_points(shares: Any, number: int) -> None:
    found = shares(number)
    assert found["Attention"].points == found["Attention"].maximum
    assert "A person will take a look: `torch." in found["Attention"].reason


def test_a_disturbed_watch_leaves_the_points_to_a_person(shares: Any) -> None:
    found = shares(137)
    assert found["Attention"].points is None
    told = re.search(
        r"The watch for forbidden parts was disturbed \(noticed after: ([\w, ]+)\)", found["Attention"].reason
    )
    assert told and "Attention" in told[1]
