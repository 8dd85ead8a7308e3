"""Batch normalizations are read whatever they are called, and what is wrong with one is said."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grader.kit.convolutions import batch_norm_oddities, batch_norms
from grader.protocol.replies import Parameter


class OwnNorm(nn.Module):
    """A batch normalization as a student writes it, with one thing wrong."""

    def __init__(self, channels: int, wrong: str = "", shape: tuple[int, ...] = ()) -> None:
        super().__init__()
        shape = shape or (1, channels, 1, 1)
        self.gamma, self.beta = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        mean, var = torch.zeros(shape), torch.ones(shape)
        if wrong == "no buffers":
            self.moving_mean, self.moving_var = mean, var
        else:
            self.register_buffer("moving_mean", mean)
            self.register_buffer("moving_var", var)
        self.wrong = wrong

    def forward(self, x: Tensor) -> Tensor:
        axes, wrong, shape = (0, 2, 3), self.wrong, (1, -1, 1, 1)
        if wrong == "per image":
            axes = (2, 3)
        mean, var = x.mean(axes, keepdim=True), x.var(axes, keepdim=True, unbiased=wrong == "unbiased")
        use_batch = (self.training or wrong == "batch always") and wrong != "running always"
        if self.training or wrong == "changes in evaluation":
            with torch.no_grad():
                share = {"swapped": 0.9, "fixed": 0.0, "momentum": 0.5}.get(wrong, 0.1)
                fresh = x.var((0, 2, 3), keepdim=True, unbiased=wrong != "biased running")
                means = x.mean((0, 2, 3), keepdim=True)
                for old, new in ((self.moving_mean, means), (self.moving_var, fresh)):
                    old.mul_(1 - share).add_(share * new.reshape(old.shape))
        if not use_batch:
            mean, var = self.moving_mean.view(shape), self.moving_var.view(shape)
        eps = 0.0 if wrong == "no eps" else 1e-5
        y = (x - mean) / (var + eps).sqrt() * self.gamma.view(shape)
        return y if wrong == "no bias" and not self.training else y + self.beta.view(shape)


class Built:
    """A module with the surface of a component."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.parameters = [
            Parameter(name, tuple(p.shape), True, (name,)) for name, p in module.named_parameters()
        ]

    def __call__(self, x: Tensor, *, train: bool = False) -> Tensor:
        with torch.no_grad():
            return self.module.train(train)(x).clone()  # type: ignore[no-any-return]

    def weights(self) -> dict[str, Tensor]:
        named = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        return {name: value.detach().clone() for name, value in named.items()}

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        named = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        with torch.no_grad():
            for name, value in values.items():
                assert named[name].shape == value.shape
                named[name].copy_(value)


def made(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def oddities(module: nn.Module, shape: tuple[int, ...] = (4, 3, 5, 6), **settings: Any) -> list[str]:
    return list(batch_norm_oddities(Built(module), made, shape, **settings))


def test_pytorchs_norms_are_read_with_their_buffers() -> None:
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(3, affine=False))
    component = Built(module)
    with torch.no_grad():
        component(torch.randn(4, 2, 6, 6), train=True)
    one, other = batch_norms(component.weights())
    assert (one.name, other.name) == ("1", "3")
    assert torch.equal(one.mean, module[1].running_mean) and torch.equal(one.variance, module[1].running_var)
    assert torch.equal(one.gain, module[1].weight)
    assert other.gain is None and other.bias is None
    assert one.names["variance"] == "1.running_var"


def test_what_is_no_batch_norm_is_none() -> None:
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.LayerNorm(3), nn.Linear(3, 3))
    assert batch_norms(Built(module).weights()) == []


@pytest.mark.parametrize("shape", [(3,), (1, 3, 1, 1)])
def test_a_norm_of_ones_own_is_read_by_what_it_began_as(shape: tuple[int, ...]) -> None:
    component = Built(nn.Sequential(nn.Conv2d(2, 3, 1), OwnNorm(3, shape=shape)))
    initial = component.weights()
    component(made(4, 2, 5, 5), train=True)
    trainable = [parameter.name for parameter in component.parameters]
    [read] = batch_norms(component.weights(), initial=initial, trainable=trainable)
    assert dict(read.names) == {
        "gain": "1.gamma",
        "bias": "1.beta",
        "mean": "1.moving_mean",
        "variance": "1.moving_var",
    }
    assert read.mean.shape == (3,)
    assert torch.equal(read.mean, component.module[1].moving_mean.reshape(-1))  # type: ignore[index]
    component.set_weights(read.named(gain=torch.zeros(3), mean=torch.ones(3)))
    assert component.module[1].gamma.abs().sum() == 0  # type: ignore[index]
    assert batch_norms(component.weights()) == []


def test_it_computes_what_pytorch_does() -> None:
    module = nn.BatchNorm2d(3)
    component, x = Built(module), 1 + made(4, 3, 5, 5)
    component.set_weights({"weight": made(3), "bias": made(3) + 1, "running_mean": made(3)})
    [before] = batch_norms(component.weights())
    assert torch.allclose(before(x), component(x), atol=1e-6)
    assert torch.allclose(before(x, train=True), component(x, train=True), atol=1e-6)
    [after] = batch_norms(component.weights())
    assert torch.allclose(before.after(x).mean, after.mean, atol=1e-6)
    assert torch.allclose(before.after(x).variance, after.variance, atol=1e-6)
    assert not torch.allclose(before.variance, after.variance)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.BatchNorm2d(3), (4, 3, 5, 6)),
        (nn.BatchNorm1d(3), (6, 3)),
        (nn.BatchNorm1d(3, affine=False), (6, 3, 4)),
        (OwnNorm(3), (4, 3, 5, 6)),
        (OwnNorm(3, shape=(3,)), (2, 3, 1, 4)),
    ],
)
def test_of_a_right_one_nothing_is_said(module: nn.Module, shape: tuple[int, ...]) -> None:
    assert oddities(module, shape) == []


def test_another_momentum_is_what_the_assignment_says() -> None:
    assert oddities(nn.BatchNorm2d(3, momentum=0.5), momentum=0.5) == []
    assert oddities(nn.BatchNorm2d(3, eps=0.1), eps=0.1) == []
    assert len(oddities(nn.BatchNorm2d(3, eps=0.1))) == 2


@pytest.mark.parametrize(
    ("wrong", "sentences"),
    [
        ("no buffers", ["are not buffers, so they are neither saved"]),
        ("running always", ["In training mode it normalizes by the running mean"]),
        ("batch always", ["In evaluation mode it normalizes by the batch's mean"]),
        ("unbiased", ["In training mode the variance is a sum of squares divided by n - 1"]),
        ("per image", ["In training mode the output is not gain"]),
        ("fixed", ["do not change in training mode"]),
        ("swapped", ["takes 0.9 of each batch's and keeps 0.1"]),
        ("momentum", ["is not 0.9 of itself and 0.1 of the batch's"]),
        (
            "biased running",
            ["The running variance does not take the batch's variance with division by n - 1"],
        ),
        ("no bias", ["In evaluation mode the output is not gain"]),
        ("changes in evaluation", ["change in evaluation mode, too"]),
    ],
)
def test_what_is_wrong_is_said(wrong: str, sentences: list[str]) -> None:
    found = oddities(OwnNorm(3, wrong))
    if wrong == "changes in evaluation":  # what it changes, it then uses
        found = found[-1:]
    if wrong == "running always":  # it changes them first
        found, sentences = found[:1], ["In training mode"]
    assert len(found) == len(sentences), found
    assert all(part in sentence for part, sentence in zip(sentences, found, strict=True))


def test_a_layer_that_is_none_is_told() -> None:
    assert oddities(nn.Conv2d(3, 3, 1)) == [
        "Its parameters and buffers are not a gain, a bias, a running mean and a running variance."
    ]


class InLists(nn.Module):
    """The vectors of three norms, in lists that are no modules of one norm each."""

    def __init__(self, channels: tuple[int, ...] = (4, 4, 6)) -> None:
        super().__init__()
        self.gains = nn.ParameterList(nn.Parameter(torch.ones(n)) for n in channels)
        self.shifts = nn.ParameterList(nn.Parameter(torch.zeros(n)) for n in channels)
        for number, n in enumerate(channels):
            self.register_buffer(f"mean{number}", torch.zeros(n))
            self.register_buffer(f"var{number}", torch.ones(n))


def test_norms_in_lists_are_read_by_their_order() -> None:
    module = InLists()
    initial, trainable = dict(module.state_dict()), [name for name, _ in module.named_parameters()]
    norms = batch_norms(initial, initial=initial, trainable=trainable)
    assert [dict(norm.names) for norm in norms] == [
        {"gain": f"gains.{i}", "bias": f"shifts.{i}", "mean": f"mean{i}", "variance": f"var{i}"}
        for i in range(3)
    ]
    assert batch_norms(initial) == [], "without what they began as, nobody knows which is which"
    lacking = {name: value for name, value in initial.items() if name != "var1"}
    assert batch_norms(lacking, initial=lacking, trainable=trainable) == []
