"""Convolutions are found among weights whatever they are called, each with its bias."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from grader.kit.convolutions import convolutions


class OwnConvolution(nn.Module):
    """With plain parameters."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(5, 3, 3, 3))
        if bias:
            self.shift = nn.Parameter(torch.randn(5))
        self.filters = nn.Parameter(torch.randn(4, 5, 1, 1))
        self.offset = nn.Parameter(torch.randn(4))


class OwnNorm(nn.Module):
    """With parameters that broadcast."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1, 4, 1, 1))
        self.beta = nn.Parameter(torch.zeros(1, 4, 1, 1))


def weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """As a component gives them."""
    return {
        name: value.detach()
        for name, value in {**dict(module.named_parameters()), **dict(module.named_buffers())}.items()
    }


def test_pytorchs_own() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(8, 8)
    )
    found = convolutions(weights(module))
    assert [each.name for each in found] == ["0.weight", "2.weight"]
    assert [each.bias is not None for each in found] == [False, True]
    assert torch.equal(found[1].bias, module[2].bias)
    assert found[0].kernel == (3, 3)


def test_parameters_of_ones_own() -> None:
    """The only vector that fits between a kernel and the next one is its bias."""
    module = nn.Sequential(OwnConvolution(), OwnNorm())
    found = convolutions(weights(module))
    assert [each.name for each in found] == ["0.kernel", "0.filters"]
    assert torch.equal(found[0].bias, module[0].shift)
    assert torch.equal(found[1].bias, module[0].offset)
    without = convolutions(weights(OwnConvolution(bias=False)))
    assert [each.bias is None for each in without] == [True, False]


def test_vectors_of_a_norm_are_no_biases() -> None:
    """Where several fit, none is taken."""
    module = OwnConvolution()
    module.gain, module.more = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))
    assert convolutions(weights(module))[1].bias is None


@pytest.mark.parametrize(
    "settings", [{}, {"stride": 2}, {"padding": 0}, {"padding": 3, "dilation": 2}], ids=str
)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_it_computes_what_pytorch_does(axes: int, settings: dict[str, int]) -> None:
    """Half the kernel of padding where none is named."""
    kind, function = [(nn.Conv1d, F.conv1d), (nn.Conv2d, F.conv2d), (nn.Conv3d, F.conv3d)][axes - 1]
    module, x = kind(3, 4, 3), torch.randn(2, 3, *[9] * axes)
    [read] = convolutions(weights(module))
    expected = function(x, module.weight, module.bias, **{"padding": 1, **settings})  # type: ignore[operator]
    assert torch.allclose(read(x, **settings), expected)


def test_groups() -> None:
    module, x = nn.Conv2d(4, 4, 3, padding=1, groups=4), torch.randn(1, 4, 6, 6)
    [read] = convolutions(weights(module))
    assert torch.allclose(read(x, groups=4), module(x))
