"""Reading a `.pth`: weights only, bounded, plain."""

import io
from typing import Any

import torch
from torch import Tensor

NESTED = ("state_dict", "model_state_dict", "model")
MAX_TENSORS = 5000


def state_dict(data: bytes, max_bytes: int) -> dict[str, Tensor] | str:
    """The weights in a checkpoint file, or a clause that says why there are none to be had.

    Nothing is unpickled but tensors and plain containers (`weights_only`). The sizes that tensors claim are
    checked, because a stride of 0 makes a small file claim terabytes.
    """
    try:
        loaded: Any = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        # PyTorch's words for a class or function that a file names; the rest of its message is always there
        if "GLOBAL" in str(error):
            return "it holds a whole pickled object: save `model.state_dict()` instead of `model`"
        return "it cannot be read: save it again with `torch.save(model.state_dict(), path)`"
    for key in NESTED:
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
            break
    if not isinstance(loaded, dict) or not loaded or len(loaded) > MAX_TENSORS:
        return "it holds no state_dict: save it again with `torch.save(model.state_dict(), path)`"
    total = 0
    for name, value in loaded.items():
        if not isinstance(name, str) or not _is_plain(value):
            return f"its entry {str(name)[:60]!r} is not a plain tensor: save `model.state_dict()`"
        total += value.numel() * value.element_size()
        if total > max_bytes or value.numel() * value.element_size() > value.untyped_storage().nbytes():
            return "its tensors claim more memory than the file can hold"
    prefix = "module."  # nn.DataParallel puts it before every name
    if all(name.startswith(prefix) for name in loaded):
        return {name.removeprefix(prefix): value for name, value in loaded.items()}
    return dict(loaded)


def _is_plain(value: object) -> bool:
    """Whether it is a tensor with numbers of its own: not sparse, quantized, or on the device `meta`."""
    return (
        type(value) is Tensor
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )
