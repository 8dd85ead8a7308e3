"""What a residual block hands on beside its branch: found by silencing the branch's normalization.

Source: He et al. (2016), section 3.2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from grader.kit.closeness import same
from grader.kit.convolutions.normalization import BatchNorm

Tensor = Any
Kind = Literal["identity", "projection", "none", "unknown"]
SMALL = 1e-6  # of the input's size: outputs that move by less do not move


@dataclass(frozen=True)
class Shortcut:
    """What goes around a block's branch.

    Attributes:
        kind: `identity`: the input itself; `projection`: something that each place of the output makes of one
            place of the input alone; `none`: nothing; `unknown`: something else.
        rectified: A ReLU follows the sum.
        silenced: The name of the normalization whose gain and bias were set to zero; empty if none helps.
    """

    kind: Kind
    rectified: bool = False
    silenced: str = ""


class Settable(Protocol):
    """A component whose weights can be set."""

    def __call__(self, x: Tensor) -> Tensor:
        """The output for an input."""

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters by name."""


def shortcut(component: Settable, x: Tensor, norms: list[BatchNorm]) -> Shortcut:
    """What a residual block hands on where its branch gives zero.

    The branch gives zero when its last normalization has gain and bias zero, or an earlier one while no later
    one has a bias or a mean; each is tried, the last one first, and set back.

    Args:
        component: The block, in evaluation mode, of (batch, channels, height, width).
        x: An input with numbers of both signs.
        norms: Its normalizations, as `batch_norms` reads them.
    """
    found = Shortcut("unknown")
    for norm in reversed(norms):
        held = norm.named(gain=norm.gain, bias=norm.bias)
        if not held:
            continue
        component.set_weights({name: value * 0 for name, value in held.items()})
        kind, rectified = _kind(component, x)
        component.set_weights(held)
        if kind in ("identity", "projection"):
            return Shortcut(kind, rectified, norm.name)
        if kind == "none" and found.kind == "unknown":
            found = Shortcut(kind, False, norm.name)
    return found


def _kind(component: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Kind, bool]:
    y = component(x)
    if y.shape == x.shape:
        if same(y, x):
            return "identity", False
        if same(y, x.clamp(min=0)):
            return "identity", True
    if float(y.std()) <= SMALL * float(x.std()):
        return "none", False
    return ("projection", bool((y >= 0).all())) if _is_pointwise(component, x, y) else ("unknown", False)


def _is_pointwise(component: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> bool:
    """Whether some place of x reaches one place of y, and no place reaches more."""
    height, width = x.shape[2:]
    reached = []
    for row in range(min(height, 4)):
        for column in range(min(width, 4)):
            changed = x.clone()
            changed[:, :, row, column] += 3 * x.std()
            moved = (component(changed) - y).abs().amax(dim=(0, 1)) > SMALL * float(x.std())
            reached.append(int(moved.sum()))
    return max(reached) == 1
