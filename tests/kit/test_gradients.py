"""Numerical gradients: right ones pass, wrong ones are found with their entry, at any scale and at kinks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from grader.kit import gradient_fault

RANDOM = np.random.default_rng(5)
WEIGHTS = RANDOM.normal(size=(6, 4))
X = RANDOM.normal(size=(5, 6))


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return self.function(x)


def squares(x: Any) -> float:
    """A loss of a linear layer."""
    return float(((x @ WEIGHTS) ** 2).mean())


def by_squares(x: Any) -> Any:
    return 2 * x @ WEIGHTS @ WEIGHTS.T / (len(x) * WEIGHTS.shape[1])


def test_a_right_gradient_takes_few_calls() -> None:
    """However many entries there are."""
    for rows in (5, 2000):
        x = np.random.default_rng(rows).normal(size=(rows, 6))
        f = Counted(squares)
        assert gradient_fault(f, x, by_squares(x)) is None
        assert f.calls <= 25


@pytest.mark.parametrize("seed", range(5))
def test_the_entry_that_is_wrong_is_named_with_both_values(seed: int) -> None:
    wrong = by_squares(X).copy()
    wrong[3, 2] += 0.25
    f = Counted(squares)
    fault = gradient_fault(f, X, wrong, seed=seed)
    assert fault is not None
    assert fault.entry == (3, 2)
    assert fault.stated == pytest.approx(wrong[3, 2])
    assert fault.measured == pytest.approx(by_squares(X)[3, 2], rel=1e-4)
    assert f.calls <= 60
    assert "at entry (3, 2); it should be" in fault.in_words


@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: g * 20,
        lambda g: -g,
        lambda g: g * 0,
        lambda g: g + g.mean(),
        lambda g: g * 1.001,
        lambda g: g[::-1],
        lambda g: np.where(np.arange(6) == 0, math.nan, g),
    ],
    ids=["of the sum", "sign", "nothing", "offset", "a thousandth", "rows turned", "not a number"],
)
def test_usual_mistakes_are_found(wrong: Callable[[Any], Any]) -> None:
    assert gradient_fault(squares, X, wrong(by_squares(X))) is not None


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e4, 1e9])
def test_the_scale_does_not_matter(scale: float) -> None:
    """Of x, and of the function."""
    x = X * scale
    assert gradient_fault(squares, x, by_squares(x)) is None
    assert gradient_fault(squares, x, 1.01 * by_squares(x)) is not None
    large = [scale * by_squares(X), 1.01 * scale * by_squares(X)]
    faults = [gradient_fault(lambda given: scale * squares(given), X, each) for each in large]
    assert [fault is None for fault in faults] == [True, False]


def test_an_offset_does_not_matter() -> None:
    """A loss that is large for another reason."""
    assert gradient_fault(lambda x: 1000.0 + squares(x), X, by_squares(X)) is None


def relu_gradient(x: Any, at_zero: float) -> Any:
    return np.where(x == 0, at_zero, x > 0)


@pytest.mark.parametrize("at_zero", [0.0, 0.5, 1.0])
def test_at_a_kink_every_value_between_the_slopes_is_right(at_zero: float) -> None:
    x = X.copy()
    x[[0, 2, 4], [1, 3, 5]] = 0.0
    gradient = relu_gradient(x, at_zero)
    assert gradient_fault(lambda x: np.maximum(x, 0).sum(), x, gradient) is None


@pytest.mark.parametrize("at_zero", [-0.5, 2.0])
def test_a_value_beside_the_slopes_of_a_kink_is_wrong(at_zero: float) -> None:
    x = X.copy()
    x[2, 3] = 0.0
    fault = gradient_fault(lambda x: np.maximum(x, 0).sum(), x, relu_gradient(x, at_zero))
    assert fault is not None
    assert fault.entry == (2, 3)
    assert fault.measured == pytest.approx(0.0 if at_zero < 0 else 1.0)  # the nearer slope


def test_a_wrong_entry_beside_kinks_is_found() -> None:
    x = X.copy()
    x[0] = 0.0
    gradient = relu_gradient(x, 0.0)
    gradient[3, 1] = 1 - gradient[3, 1]
    fault = gradient_fault(lambda x: np.maximum(x, 0).sum(), x, gradient)
    assert fault is not None
    assert fault.entry == (3, 1)


@pytest.mark.parametrize("seed", range(20))
def test_kinks_near_x_are_no_fault(seed: int) -> None:
    """Nearer than the first step."""
    x = X.copy()
    x[1] = np.random.default_rng(seed).uniform(-1e-5, 1e-5, 6)
    assert gradient_fault(lambda x: np.maximum(x, 0).sum(), x, relu_gradient(x, 0.0), seed=seed) is None


def test_tensors_are_given_tensors_in_double_precision() -> None:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([0, 2, 1, 1])
    seen = []

    def loss(given: torch.Tensor) -> torch.Tensor:
        seen.append(given.dtype)
        return F.cross_entropy(given, labels)

    gradient = (x.double().softmax(dim=1) - F.one_hot(labels, 3)) / 4
    assert gradient_fault(loss, x, gradient.float()) is None
    assert set(seen) == {torch.float64}
    fault = gradient_fault(loss, x, x.softmax(dim=1) / 4)
    assert fault is not None
    assert fault.entry in {(0, 0), (1, 2), (2, 1), (3, 1)}


def test_what_is_computed_in_single_precision_is_looked_at_more_coarsely() -> None:
    """The steps are larger, so that rounding does not look like a fault."""

    def single(x: Any) -> float:
        return float(squares(x.astype(np.float32).astype(np.float64)))

    assert gradient_fault(single, X, by_squares(X)) is None
    assert gradient_fault(single, X, 1.1 * by_squares(X)) is not None
    with torch.no_grad():
        layer = torch.nn.Linear(6, 4)
        x, c = torch.randn(3, 6), torch.randn(3, 4)

        def layer_of(given: torch.Tensor) -> torch.Tensor:
            return layer(given.float())

        gradient = c @ layer.weight
        assert gradient_fault(layer_of, x, gradient, cotangent=c) is None
        fault = gradient_fault(layer_of, x, gradient + torch.eye(3, 6), cotangent=c)
    assert fault is not None
    assert fault.entry[0] == fault.entry[1]


def test_a_function_of_many_numbers_needs_a_cotangent() -> None:
    c = RANDOM.normal(size=(5, 4))
    assert gradient_fault(lambda x: x @ WEIGHTS, X, c @ WEIGHTS.T, cotangent=c) is None
    assert gradient_fault(lambda x: x @ WEIGHTS, X, c @ WEIGHTS.T * 2, cotangent=c) is not None
    with pytest.raises(ValueError, match="hand over a cotangent"):
        gradient_fault(lambda x: x @ WEIGHTS, X, c @ WEIGHTS.T)


def test_a_check_that_compares_nothing_is_told() -> None:
    with pytest.raises(ValueError, match="compare shapes first"):
        gradient_fault(squares, X, np.zeros((6, 5)))
    with pytest.raises(ValueError, match="not finite near x"):
        gradient_fault(lambda x: math.inf, X, X)


def test_a_scalar_and_nothing_at_all() -> None:
    assert gradient_fault(lambda x: float(x) ** 3, np.array(2.0), np.array(12.0)) is None
    fault = gradient_fault(lambda x: float(x) ** 3, np.array(2.0), np.array(6.0))
    assert fault is not None
    assert fault.in_words == "is 6; it should be 12"
    assert gradient_fault(lambda x: 0.0, np.zeros((0, 3)), np.zeros((0, 3))) is None


def test_a_gradient_of_zero_where_the_function_is_constant() -> None:
    assert gradient_fault(lambda x: 3.0, X, np.zeros_like(X)) is None
    fault = gradient_fault(lambda x: 3.0, X, np.full_like(X, 1e-3))
    assert fault is not None
    assert (fault.stated, fault.measured) == (1e-3, 0.0)
