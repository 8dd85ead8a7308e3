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


class Squeezing(nn.Module):
    """A model that loses the only axis of length one, the batch of one."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3 * 8 * 8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Answers for two images or more."""
        x = x.squeeze()
        assert x.ndim == 4
        return self.head(x.flatten(1))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 5)), 3 * 8 * 8 * 5),
        (nn.Conv2d(3, 4, 3, padding=1), 4 * 3 * 9 * 64),
        (nn.ReLU(), 0),
        (Squeezing(), 3 * 8 * 8 * 5),
        (Raising(), -1),
    ],
)
def test_each_product_that_is_added_counts_once(model: nn.Module, expected: int) -> None:
    assert multiply_adds(model, torch.zeros(2, 3, 8, 8)) == expected
