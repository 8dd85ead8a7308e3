"""Batch normalization among a student's weights, and the shortcut of a residual block.

It finds which weights belong to a batch normalization, and says how such a layer differs from PyTorch's. A
block's shortcut is found by silencing the normalization of its branch. It decides no points.
Sources: Ioffe and Szegedy (2015), algorithms 1 and 2; He et al. (2016), section 3.2.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from grader.kit.compared_results import same
from grader.kit.convolutions.convolution import is_vector, module_of

Tensor = Any
ROLES = ("gain", "bias", "mean", "variance")
TORCHS_NAMES = ("weight", "bias", "running_mean", "running_var")
MOMENTUM, EPS = 0.1, 1e-5  # PyTorch's


@dataclass(frozen=True)
class BatchNorm:
    """One batch normalization's weights.

    Attributes:
        name: The path of the module that has them; empty: the component itself.
        gain, bias: (channels,), or None if there is none.
        mean, variance: The running ones, (channels,), or None if no buffer holds them.
        names: `gain`, `bias`, `mean`, `variance` -> the student's name, for those that exist.
        shapes: By the same keys, their shapes in the student's module.
    """

    name: str
    gain: Tensor | None
    bias: Tensor | None
    mean: Tensor | None
    variance: Tensor | None
    names: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def named(self, **values: Tensor) -> dict[str, Tensor]:
        """Values with the student's names and shapes, as `component.set_weights` takes them.

        Args:
            values: `gain`, `bias`, `mean`, `variance`; those that the student lacks are left out.
        """
        return {
            self.names[role]: value.reshape(self.shapes[role])
            for role, value in values.items()
            if role in self.names
        }

    def __call__(self, x: Tensor, *, train: bool = False, eps: float = EPS) -> Tensor:
        """PyTorch's own output for x, (batch, channels, ...); with x's statistics if `train`."""
        from torch.nn import functional as F

        statistics = (None, None) if train else (self.mean, self.variance)
        return F.batch_norm(x, *statistics, self.gain, self.bias, train, 0.0, eps)

    def after(self, x: Tensor, *, momentum: float = MOMENTUM) -> "BatchNorm":
        """The norm after a call with x, (batch, channels, ...), in training mode: other running statistics.

        Args:
            momentum: The share of the batch's statistics; the variance is divided by n - 1.
        """
        from torch.nn import functional as F

        if self.mean is None or self.variance is None:
            return self
        mean, variance = self.mean.clone(), self.variance.clone()
        F.batch_norm(x, mean, variance, None, None, True, momentum)
        return dataclasses.replace(self, mean=mean, variance=variance)


def batch_norms(
    weights: Mapping[str, Tensor],
    *,
    initial: Mapping[str, Tensor] | None = None,
    trainable: Collection[str] = (),
) -> list[BatchNorm]:
    """The batch normalizations that a component has, in order of registration.

    A module whose vectors have PyTorch's names is one. In a student's own module they are recognized by their
    initial values: the gain and the variance are ones, the bias and the mean zeros; gain and bias are
    trainable. If a module keeps no running statistics, a gain and a bias are enough. If no module holds one,
    the component may keep the vectors of all its normalizations apart from them, in lists: then the first
    gain, bias, mean and variance belong together, and so on.

    Args:
        weights: Parameters and buffers by name, as `component.weights()` gives them.
        initial: Their values when the component was built; without, only PyTorch's names are understood.
        trainable: The names of the parameters.
    """
    initial = initial or {}
    groups: dict[str, list[str]] = {}
    for name in weights:
        groups.setdefault(module_of(name), []).append(name)
    norms = []
    for module, names in groups.items():
        vectors = [name for name in names if is_vector(weights[name])]
        lengths = {weights[name].numel() for name in vectors}
        if len(vectors) < 2 or len(lengths) != 1:
            continue
        roles = _by_name(vectors) or _by_value(vectors, initial, trainable)
        if roles:
            norms.append(_norm(module, roles, weights))
    return norms or [_norm("", roles, weights) for roles in _by_order(weights, initial, trainable)]


def _norm(module: str, roles: dict[str, str], weights: Mapping[str, Tensor]) -> BatchNorm:
    read = {role: weights[roles[role]].reshape(-1) if role in roles else None for role in ROLES}
    shapes = {role: tuple(weights[name].shape) for role, name in roles.items()}
    return BatchNorm(module, **read, names=roles, shapes=shapes)


def _by_order(
    weights: Mapping[str, Tensor], initial: Mapping[str, Tensor], trainable: Collection[str]
) -> list[dict[str, str]]:
    """The roles of each norm, if there are as many vectors for each role, and those in one place fit."""
    lists: dict[str, list[str]] = {role: [] for role in ROLES}
    for name, value in weights.items():
        role = _role(initial.get(name), name in trainable) if is_vector(value) else ""
        if role:
            lists[role].append(name)
    if len({len(names) for names in lists.values()}) != 1:
        return []
    together = [dict(zip(ROLES, names, strict=True)) for names in zip(*lists.values(), strict=True)]
    fits = all(len({weights[name].numel() for name in roles.values()}) == 1 for roles in together)
    return together if fits else []


def _role(value: Tensor | None, is_trainable: bool) -> str:
    """What a vector is, by its initial value: one of `ROLES`, or nothing."""
    if value is None or not value.numel() or bool((value != value.flatten()[0]).any()):
        return ""
    first = float(value.flatten()[0])
    if first not in (0.0, 1.0):
        return ""
    if is_trainable:
        return "gain" if first else "bias"
    return "variance" if first else "mean"


def _by_name(names: Sequence[str]) -> dict[str, str]:
    """The roles, if all have PyTorch's names."""
    last_names = {name.rpartition(".")[2]: name for name in names}
    if not set(last_names) <= set(TORCHS_NAMES) or "running_mean" not in last_names:
        return {}
    return {
        role: last_names[called]
        for role, called in zip(ROLES, TORCHS_NAMES, strict=True)
        if called in last_names
    }


def _by_value(
    names: Sequence[str], initial: Mapping[str, Tensor], trainable: Collection[str]
) -> dict[str, str]:
    """The roles, if the initial values show them."""
    roles: dict[str, str] = {}
    for name in names:
        role = _role(initial.get(name), name in trainable)
        if not role or role in roles:
            return {}
        roles[role] = name
    return roles


class Layer(Protocol):
    """A component that is a batch normalization."""

    @property
    def parameters(self) -> Sequence[Any]:
        """Its parameters, each with a name."""

    def __call__(self, x: Tensor, *, train: bool = False) -> Tensor:
        """The output for an input."""

    def weights(self) -> dict[str, Tensor]:
        """Parameters and buffers by name."""

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters and buffers."""


def batch_norm_oddities(
    layer: Layer,
    made: Callable[..., Tensor],
    shape: Sequence[int],
    *,
    momentum: float = MOMENTUM,
    eps: float = EPS,
) -> Iterator[str]:
    """Sentences about how a layer of batch normalization differs from PyTorch's; causes come first.

    Args:
        layer: Just built.
        made: A fresh standard-normal tensor of a shape: `student.tensor`.
        shape: Of the input, (batch, channels, ...).
        momentum: The share of the batch's statistics in the running ones.
        eps: What is added to the variance.
    """
    weights = layer.weights()
    trainable = [parameter.name for parameter in layer.parameters]
    norms = batch_norms(weights, initial=weights, trainable=trainable)
    if len(norms) != 1:
        yield "Its parameters and buffers are not a gain, a bias, a running mean and a running variance."
        return
    if norms[0].mean is None or norms[0].variance is None:
        yield (
            "The running mean and variance are not buffers, so they are neither saved with the model nor "
            "moved to its device."
        )
        return
    values = {"gain": made(shape[1]) + 2, "bias": made(shape[1]), "mean": made(shape[1])}
    values["variance"] = made(shape[1]) ** 2 + 0.5
    layer.set_weights(norms[0].named(**values))
    before = _read(layer, norms[0])
    x = 1 + 2 * made(*shape)
    trained = layer(x, train=True)
    after = _read(layer, norms[0])
    yield from _in_training(trained, before, x, eps)
    yield from _of_running(before, after, x, momentum)
    evaluated = layer(x)
    if not same(evaluated, after(x, eps=eps)):
        if same(evaluated, after(x, train=True, eps=eps)):
            yield "In evaluation mode it normalizes by the batch's mean and variance, not the running ones."
        else:
            yield (
                "In evaluation mode the output is not gain * (x - mean) / sqrt(variance + eps) + bias, with "
                "the running mean and variance."
            )
    at_rest = _read(layer, norms[0])
    if not (same(at_rest.mean, after.mean) and same(at_rest.variance, after.variance)):
        yield "The running mean and variance change in evaluation mode, too."


def _read(layer: Layer, norm: BatchNorm) -> BatchNorm:
    """A norm with the weights that the layer holds now."""
    weights = layer.weights()
    return dataclasses.replace(norm, **{role: weights[name].reshape(-1) for role, name in norm.names.items()})


def _in_training(output: Tensor, norm: BatchNorm, x: Tensor, eps: float) -> Iterator[str]:
    """What is wrong with the output in training mode."""
    if same(output, norm(x, train=True, eps=eps)):
        return
    if same(output, norm(x, eps=eps)):
        yield "In training mode it normalizes by the running mean and variance, not by those of the batch."
        return
    axes = [0, *range(2, x.ndim)]
    mean, gain, bias = x.mean(axes, keepdim=True), *(_shaped(vector, x) for vector in (norm.gain, norm.bias))
    unbiased = (x - mean) / (x.var(axes, keepdim=True) + eps) ** 0.5
    if same(output, unbiased * (1 if gain is None else gain) + (0 if bias is None else bias), tolerance=1e-5):
        yield (
            "In training mode the variance is a sum of squares divided by n - 1; to normalize a batch, "
            "divide by n."
        )
        return
    yield (
        "In training mode the output is not gain * (x - mean) / sqrt(variance + eps) + bias, with the mean "
        "and variance of each channel over the batch and all places."
    )


def _shaped(vector: Tensor | None, x: Tensor) -> Tensor | None:
    return None if vector is None else vector.view(1, -1, *[1] * (x.ndim - 2))


def _of_running(before: BatchNorm, after: BatchNorm, x: Tensor, momentum: float) -> Iterator[str]:
    """What is wrong with the running statistics after a call in training mode."""
    expected, swapped = before.after(x, momentum=momentum), before.after(x, momentum=1 - momentum)
    if same(after.mean, expected.mean) and same(after.variance, expected.variance):
        return
    if same(after.mean, before.mean) and same(after.variance, before.variance):
        yield "The running mean and variance do not change in training mode."
    elif same(after.mean, swapped.mean) and not same(after.mean, expected.mean):
        yield (
            f"The running mean takes {1 - momentum:g} of each batch's and keeps {momentum:g} of its own; "
            "it should be the other way round."
        )
    elif same(after.mean, expected.mean):
        yield (
            "The running variance does not take the batch's variance with division by n - 1, "
            "as PyTorch's does."
        )
    else:
        yield f"The running mean is not {1 - momentum:g} of itself and {momentum:g} of the batch's."


# --- shortcuts -------------------------------------------------------------------------------------------


Kind = Literal["identity", "projection", "none", "unknown"]
SMALL = 1e-6  # of the input's size: outputs that move by less count as unmoved


@dataclass(frozen=True)
class Shortcut:
    """A block's shortcut: what goes around its branch.

    Attributes:
        kind: `identity`: the input itself; `projection`: each place of the output depends on one place of the
            input only; `none`: nothing; `unknown`: something else.
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
    """The output of a residual block when its branch gives zero.

    The branch gives zero if its last normalization has gain and bias zero, or an earlier one while no later
    one has a bias or a mean. Each is tried, the last one first, and then restored.

    Args:
        component: The block, in evaluation mode, of (batch, channels, height, width).
        x: An input with numbers of both signs.
        norms: Its normalizations, as `batch_norms` reads them.
    """
    best = Shortcut("unknown")
    for norm in reversed(norms):
        held = norm.named(gain=norm.gain, bias=norm.bias)
        if not held:
            continue
        component.set_weights({name: value * 0 for name, value in held.items()})
        kind, rectified = _kind(component, x)
        component.set_weights(held)
        if kind in ("identity", "projection"):
            return Shortcut(kind, rectified, norm.name)
        if kind == "none" and best.kind == "unknown":
            best = Shortcut(kind, False, norm.name)
    return best


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
