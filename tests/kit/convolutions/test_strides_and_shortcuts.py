"""Strides are told from sizes, and what a residual block hands on beside its branch."""

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from grader.kit.convolutions import batch_norms, moves_with_input, shortcut, strides

X = torch.randn(2, 4, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Conv2d(4, 3, 3, padding=1), (1, 1)),
        (nn.Conv2d(4, 3, 3), (1, 1)),
        (nn.Conv2d(4, 3, 7, stride=2, padding=3), (2, 2)),
        (nn.Conv2d(4, 3, 3, stride=(4, 2)), (4, 2)),
        (nn.Sequential(nn.Conv2d(4, 3, 3, stride=2, padding=1), nn.MaxPool2d(2)), (4, 4)),
        (nn.AdaptiveAvgPool2d(1), (math.inf, math.inf)),
        (nn.Upsample(scale_factor=2), (0.5, 0.5)),
    ],
    ids=str,
)
def test_strides_whatever_the_padding(layer: nn.Module, expected: tuple[float, ...]) -> None:
    with torch.no_grad():
        assert strides(layer, X) == expected


class PlacesDiffer(nn.Module):
    """Adds the column's number."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.arange(x.shape[-1])


def test_a_convolution_moves_with_its_input() -> None:
    with torch.no_grad():
        assert moves_with_input(nn.Conv2d(4, 3, 3, padding=1), X)
        assert moves_with_input(nn.Conv2d(4, 3, 3, stride=2, padding=1), X, stride=2)
        assert not moves_with_input(nn.Conv2d(4, 3, 3, stride=2, padding=1), X, stride=1)
        assert not moves_with_input(PlacesDiffer(), X)
    with pytest.raises(ValueError, match="nothing inside a margin"):
        moves_with_input(nn.AdaptiveAvgPool2d(2), X)


class Block(nn.Module):
    """A residual block, or one that is not quite."""

    def __init__(self, kind: str, stride: int = 1, *, first: bool = False) -> None:
        super().__init__()
        self.kind = kind
        projection = nn.Sequential(nn.Conv2d(4, 4, 1, stride, bias=False), nn.BatchNorm2d(4))
        if first and kind == "projection":
            self.short = projection
        self.conv1, self.norm1 = nn.Conv2d(4, 4, 3, stride, 1), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 4, 3, 1, 1), nn.BatchNorm2d(4)
        if not first and kind == "projection":
            self.short = projection
        self.wide = nn.Conv2d(4, 4, 3, stride, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        match self.kind:
            case "identity":
                return (x + y).relu()
            case "not rectified":
                return x + y.relu()
            case "projection":
                return (self.short(x) + y).relu()
            case "wide":
                return (self.wide(x) + y).relu()
            case _:
                return y.relu()


class Settable:
    """A module with the surface of a component."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.module.eval()(x)  # type: ignore[no-any-return]

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        self.module.load_state_dict(dict(values), strict=False)


@pytest.mark.parametrize(
    ("block", "kind", "rectified", "silenced"),
    [
        (Block("identity"), "identity", True, "norm2"),
        (Block("not rectified"), "identity", False, "norm2"),
        (Block("projection"), "projection", True, "norm2"),
        (Block("projection", 2), "projection", True, "norm2"),
        (Block("projection", 2, first=True), "projection", True, "norm2"),
        (Block("none"), "none", False, "norm2"),
        (Block("none", 2), "none", False, "norm2"),
        (Block("wide"), "unknown", False, ""),
        (nn.Conv2d(4, 4, 3, padding=1), "unknown", False, ""),
    ],
)
def test_what_goes_around_the_branch(block: nn.Module, kind: str, rectified: bool, silenced: str) -> None:
    """It is found with the norm of the branch silenced, and the block is as it was afterwards."""
    torch.manual_seed(3)
    for parameter in block.parameters():
        nn.init.normal_(parameter, 0.2, 0.5)
    before = {name: value.clone() for name, value in block.state_dict().items()}
    norms = batch_norms({name: value.clone() for name, value in block.state_dict().items()})
    found = shortcut(Settable(block), X, norms)
    assert (found.kind, found.rectified, found.silenced) == (kind, rectified, silenced)
    assert all(torch.equal(before[name], value) for name, value in block.state_dict().items())
