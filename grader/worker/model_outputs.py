"""Outputs of a student's model: its tree of modules, its weights, its logits and its attention.

It decides whether outputs have the requested shape; other outputs are the student's fault. Names of weights
are given without the prefixes of `torch.compile`, `DataParallel` and similar wrappers. Attention is found by
numbers, not names: square results that are not negative and whose rows sum to one. It is a picture for
people, and None if it cannot be read. `grader.training` measures the outputs.

Tests: tests/worker/test_attention.py, tests/worker/test_checkpoint.py, tests/worker/test_worker_training.py
"""

import contextlib
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from grader.protocol.replies import Module
from grader.protocol.requests import MOST_STATE, MOST_TENSORS, STATE
from grader.worker.graded_images import GradedImages
from grader.worker.student_faults import RecipeError, SeenError, students_code
from grader.worker.student_module import quiet

Value = TypeVar("Value")

# torch.compile; nn.DataParallel, DistributedDataParallel and AveragedModel
PREFIXES = ("_orig_mod.", "module.")
OWN = frozenset({"n_averaged"})  # AveragedModel's


def unwrapped_names(weights: Mapping[str, Value]) -> dict[str, Value]:
    """The weights without the wrappers' prefixes, and without the wrappers' own values."""
    unwrapped = dict(weights)
    while True:
        names = unwrapped.keys() - OWN
        prefix = next(
            (candidate for candidate in PREFIXES if names and all(n.startswith(candidate) for n in names)),
            None,
        )
        if prefix is None:
            return unwrapped
        unwrapped = {name.removeprefix(prefix): unwrapped[name] for name in unwrapped if name in names}


# --- attention -------------------------------------------------------------------------------------------


FEWEST_TOKENS = 5
MOST_FOUND = 512
MOST_NUMBERS = 6_000_000  # of one answer
TOLERANCE = 1e-3  # of a sum of weights, which half precision rounds
FUSED = "aten::_scaled_dot_product"


class AttentionWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the attention weights of a forward pass.

    What one call of a module computes is one layer, even if it computes its heads one by one.
    """

    def __init__(self, images: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._images = images
        self._found: list[tuple[int, Tensor]] = []  # (call, weights of some heads)
        self._calls = 0
        self._within: list[int] = []  # the running calls of modules with weights

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
        if next(module.parameters(), None) is not None:  # nn.Softmax is only a part of what calls it
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

    def _look(self, result: Tensor) -> None:
        weights = self._weights(result)
        if weights is None or len(self._found) >= MOST_FOUND:
            return
        call = self._within[-1] if self._within else -len(self._found)
        if not any(other_call == call and _same_numbers(weights, other) for other_call, other in self._found):
            self._found.append((call, weights))

    def _weights(self, result: Tensor) -> Tensor | None:
        """The result as weights (images, heads, tokens, tokens); None if it is not that."""
        if not result.is_floating_point() or result.dim() not in (3, 4):
            return None
        if result.dim() == 4 and result.shape[1] == result.shape[2] != result.shape[3]:
            result = result.permute(0, 3, 1, 2)  # images, tokens, tokens, heads
        tokens = result.shape[-1]
        if result.shape[-2] != tokens or tokens < FEWEST_TOKENS:
            return None
        if result.dim() == 3:
            if result.shape[0] % self._images:
                return None
            result = result.reshape(self._images, -1, tokens, tokens)
        elif result.shape[0] != self._images:
            if result.shape[1] != self._images:
                return None
            result = result.transpose(0, 1)  # heads, images, tokens, tokens
        weights = result.float()
        sums = weights.sum(-1)
        fits = bool((weights.min() >= 0) & ((sums - 1).abs().max() <= TOLERANCE))
        return weights if fits else None


def _same_numbers(first: Tensor, second: Tensor) -> bool:
    """Whether both hold the same numbers in any order: other views, or after dropout that changed nothing."""
    if first.numel() != second.numel():
        return False
    squares = first.double().square().sum(), second.double().square().sum()
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


# --- outputs ---------------------------------------------------------------------------------------------


EVALUATION_BATCH = 256
MAX_MODULES = 2000
EXACT = (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)


def array(value: Tensor) -> Any:
    """A tensor as an array that a frame can carry."""
    value = value.detach().to("cpu")
    if value.dtype not in EXACT:
        value = value.to(torch.float32) if value.is_floating_point() else value.to(torch.int64)
    return value.contiguous().numpy()


def module_tree(model: nn.Module) -> tuple[Module, ...]:
    """The modules of a model, the first 2000.

    Raises:
        StudentFault: Reading them raised.
    """
    tree = []
    with students_code():  # reading a lazy layer's parameters raises
        for path, part in list(model.named_modules())[:MAX_MODULES]:
            own_numbers = sum(p.numel() for p in part.parameters(recurse=False) if p.requires_grad)
            rate = float(part.p) if isinstance(part, nn.modules.dropout._DropoutNd) else None
            kind = type(part)
            tree.append(Module(path[:300], kind.__name__[:80], str(kind.__module__)[:120], own_numbers, rate))
    return tuple(tree)


def state(model: nn.Module) -> dict[str, Any]:
    """The parameters and buffers of a model as arrays by `state:<name>`.

    Raises:
        StudentFault: Reading them raised.
        RecipeError: There are more than can be measured.
    """
    with students_code():
        named = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor)}
        size = sum(value.numel() * value.element_size() for value in named.values())
        if size > MOST_STATE or len(named) > MOST_TENSORS:
            raise RecipeError("too_many_weights")
        return {STATE + name: array(value) for name, value in named.items()}


def logits(
    model: nn.Module, data: GradedImages, device: torch.device, batch_size: int = EVALUATION_BATCH
) -> Any:
    """The model's outputs in evaluation mode, float32 (images, classes).

    Args:
        batch_size: The student's own: if it fits into memory in training, it fits here too.

    Raises:
        StudentFault: The model raised, or returns something else.
    """
    batch = min(batch_size, EVALUATION_BATCH)
    starts = range(0, len(data), batch)
    parts = (data.batch(start, min(start + batch, len(data))) for start in starts)
    return answers(model, parts, device, len(data.classes))


def answers(model: nn.Module, batches: Iterable[Tensor], device: torch.device, classes: int) -> Any:
    """The model's outputs for inputs in evaluation mode, float32 (images, classes).

    Raises:
        StudentFault: As for `logits`.
    """
    parts = []
    with students_code(), torch.no_grad(), quiet(), _evaluating(model):
        for images in batches:
            output = model(images.to(device))
            if not isinstance(output, Tensor) or output.shape != (len(images), classes):
                raise SeenError(
                    "other_outputs",
                    f"the model must return a tensor of shape (batch, {classes}), "
                    f"not {tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__}",
                )
            parts.append(output.float().cpu())
    return torch.cat(parts).numpy()


def attention(model: nn.Module, data: GradedImages, device: torch.device, images: tuple[int, ...]) -> Any:
    """The attention weights for some of the images, float32 (images, layers, tokens, tokens), or None.

    They are a picture for people: nothing else is missing if they cannot be read.
    """
    with contextlib.suppress(Exception), quiet(), _evaluating(model), same_random_numbers():
        fed = torch.cat([data.batch(index, index + 1) for index in images]).to(device)
        weights = attention_weights(model, fed)
        return None if weights is None else weights.numpy()
    return None


@contextlib.contextmanager
def same_random_numbers() -> Iterator[None]:
    """Random numbers drawn within do not change those drawn afterwards."""
    states = random.getstate(), np.random.get_state()
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=None if used else []):
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])


@contextlib.contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    try:
        model.eval()
        yield
    finally:
        model.train(was_training)
