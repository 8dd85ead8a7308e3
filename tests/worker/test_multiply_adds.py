"""How many multiply-adds an image costs."""

import pytest
import torch
from torch import nn

from grader.worker.training_setup import multiply_adds


class Raising(nn.Module):
    """A model that raises."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Nothing comes out."""
        raise ValueError(x)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 5)), 3 * 8 * 8 * 5),
        (nn.Conv2d(3, 4, 3, padding=1), 4 * 3 * 9 * 64),
        (nn.ReLU(), 0),
        (Raising(), -1),
    ],
)
def test_each_product_that_is_added_counts_once(model: nn.Module, expected: int) -> None:
    assert multiply_adds(model, torch.zeros(1, 3, 8, 8)) == expected
