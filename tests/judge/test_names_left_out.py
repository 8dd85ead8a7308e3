"""A part that uses what the checks do not execute is not judged by that: a person decides."""

from collections.abc import Callable
from typing import Any

import pytest

from grader.domain.evidence import Blame, Status

WEIGHTS = (
    "counts = torch.bincount(torch.tensor(train_set.targets))\n"
    "criterion = nn.CrossEntropyLoss(weight=len(train_set) / (len(counts) * counts.float()))\n"
)
LOSS = "F.cross_entropy(model(images), labels, label_smoothing=0.1)"


@pytest.mark.parametrize("bound", [True, False], ids=["from data", "nowhere"])
def test_a_value_made_from_data_is_missing_and_nobodys_mistake(
    examined: Callable[..., Any], solved: str, bound: bool
) -> None:
    """A name that no line binds is the student's mistake, as before."""
    text = solved.replace(LOSS, "criterion(model(images), labels)")
    made = "class_names = train_set.classes\n"
    assert text != solved and made in text
    if bound:
        text = text.replace(made, made + WEIGHTS)
    findings = examined(text, components=["train_epoch"]).findings
    first = next(finding for finding in findings if finding.status is not Status.PASSED)
    assert "`criterion`" in first.message or "'criterion'" in first.message
    assert (first.status, first.blame) == (
        (Status.ERRORED, Blame.ENGINE) if bound else (Status.FAILED, Blame.STUDENT)
    )
    assert bound is not any(finding.status is Status.FAILED for finding in findings)
