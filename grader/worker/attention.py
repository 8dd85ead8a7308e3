"""Attention weights of a student's model, read where its code computes them.

A heuristic by numbers, not names: results of tensor operations that are square, not negative, and whose rows
sum to one; fused attention is computed again. Other softmax results of that form are taken too. Where layers
differ in shape, or nothing is found, the answer is None. No points depend on it: `grader.training.examples`
draws it.

Tests: tests/worker/test_attention.py
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

FEWEST_TOKENS = 5
MOST_FOUND = 512
MOST_NUMBERS = 6_000_000  # of one answer
TOLERANCE = 1e-3  # of a sum of weights, which half precision rounds
FUSED = "aten::_scaled_dot_product"


class AttentionWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees the attention weights of a forward pass.

    What one call of a module computes is one layer, also where it goes through its heads one by one.
    """

    def __init__(self, images: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._images = images
        self._found: list[tuple[int, Tensor]] = []  # (call, weights of some heads)
        self._calls = 0
        self._within: list[int] = []  # the calls of modules with weights that are going on

    @property
    def layers(self) -> list[Tensor]:
        """Each (images, tokens, tokens), the mean over heads, in the order of the computation."""
        calls: dict[int, list[Tensor]] = {}
        for call, weights in self._found:
            calls.setdefault(call, []).append(weights)
        return [
            torch.cat(weights, dim=1).mean(dim=1)
            for weights in calls.values()
            if all(part.shape[2:] == weights[0].shape[2:] for part in weights)
        ]

    def begins(self, module: nn.Module, *_: Any) -> None:
        """A module is called."""
        if next(module.parameters(), None) is not None:  # nn.Softmax is but a part of what calls it
            self._calls += 1
            self._within.append(self._calls)

    def ends(self, module: nn.Module, *_: Any) -> None:
        """A module has answered."""
        if next(module.parameters(), None) is not None:
            self._within.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.name().startswith(FUSED):
            query, key = args[0].float(), args[1].float()
            scale = (kwargs or {}).get("scale") or query.shape[-1] ** -0.5
            self._look((query @ key.transpose(-1, -2) * scale).softmax(-1))
        elif isinstance(result, Tensor):
            self._look(result)
        return result

    def _look(self, found: Tensor) -> None:
        weights = self._weights(found)
        if weights is None or len(self._found) >= MOST_FOUND:
            return
        call = self._within[-1] if self._within else -len(self._found)
        if not any(at == call and _same_numbers(weights, other) for at, other in self._found):
            self._found.append((call, weights))

    def _weights(self, found: Tensor) -> Tensor | None:
        """The result as weights (images, heads, tokens, tokens), if that is what it is."""
        if not found.is_floating_point() or found.dim() not in (3, 4):
            return None
        if found.dim() == 4 and found.shape[1] == found.shape[2] != found.shape[3]:
            found = found.permute(0, 3, 1, 2)  # images, tokens, tokens, heads
        tokens = found.shape[-1]
        if found.shape[-2] != tokens or tokens < FEWEST_TOKENS:
            return None
        if found.dim() == 3:
            if found.shape[0] % self._images:
                return None
            found = found.reshape(self._images, -1, tokens, tokens)
        elif found.shape[0] != self._images:
            if found.shape[1] != self._images:
                return None
            found = found.transpose(0, 1)  # heads, images, tokens, tokens
        weights = found.float()
        sums = weights.sum(-1)
        fits = bool((weights.min() >= 0) & ((sums - 1).abs().max() <= TOLERANCE))
        return weights if fits else None


def _same_numbers(one: Tensor, other: Tensor) -> bool:
    """Whether both hold the same numbers in whatever order: other views, or what dropout leaves as it is."""
    if one.numel() != other.numel():
        return False
    squares = one.double().square().sum(), other.double().square().sum()
    return bool(torch.isclose(*squares, rtol=1e-9))


def attention_weights(model: nn.Module, images: Tensor) -> Tensor | None:
    """The weights of all layers, float32 (images, layers, tokens, tokens), or None if they cannot be read.

    Args:
        model: In evaluation mode.
        images: What it is fed, (images, channels, height, width).
    """
    watch = AttentionWatch(len(images))
    hooks = register_module_forward_pre_hook(watch.begins), register_module_forward_hook(watch.ends)
    try:
        with torch.no_grad(), watch:
            model(images)
    finally:
        for hook in hooks:
            hook.remove()
    layers = watch.layers
    if not layers or any(layer.shape != layers[0].shape for layer in layers):
        return None
    if sum(layer.numel() for layer in layers) > MOST_NUMBERS:
        return None
    return torch.stack(layers, dim=1).cpu()
