"""What a part's first weights are decides nothing: a residual branch may begin with zeros."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grader.domain.assignment import Assignment
from grader.domain.evidence import Status

LAST_LAYERS = {
    "self.to_out = nn.Sequential(nn.Linear(inner_dim, dim), nn.Dropout(dropout))": "self.to_out[0]",
    "            nn.Linear(hidden_dim, dim),\n            nn.Dropout(dropout),\n        )": "self.net[3]",
}


def test_branches_that_begin_with_zeros_pass(
    assignment: Assignment, examined: Callable[..., Any], solved: str
) -> None:
    source = solved
    for made, layer in LAST_LAYERS.items():
        assert source.count(made) == 1
        zeros = "".join(f"\n        nn.init.zeros_({layer}.{name})" for name in ("weight", "bias"))
        source = source.replace(made, made + zeros)
    specs = [replace(spec, shown_by=()) for spec in assignment.checks]  # public checks are asked, too
    findings = examined(source, components=["FeedForward", "Attention"], specs=specs).findings
    assert [each for each in findings if each.status is not Status.PASSED or each.message] == []
