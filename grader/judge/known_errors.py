"""Hints for common exceptions of PyTorch, einops and Python.

A heuristic over the words of a message: the first pattern that fits gives the hint, which may be wrong; where
none fits there is no hint. It decides no finding and no points: `fault` words the finding, and `verdict`
decides whose fault it is. No test asserts single hints; the named one runs through here.

Tests: tests/judge/test_examination.py
"""

import re

_HINTS = (
    (
        r"URLError|OfflineModeIsEnabled|Max retries exceeded|ProxyError|name resolution|ConnectError",
        "There is no network where homework is executed, here and where it is graded: nothing is downloaded.",
    ),
    (
        r"does not require grad",
        "backward() has nothing to follow: is the forward pass under torch.no_grad(), or was the graph cut "
        "by .item(), .detach() or argmax?",
    ),
    (
        r"mat1 and mat2 shapes cannot be multiplied|size mismatch",
        "A linear layer receives another number of features than it was made for: compare the last axis of "
        "its input with in_features.",
    ),
    (
        r"[Tt]he size of tensor a \(\d+\) must|Sizes of tensors must match|shape .* is invalid for input",
        "Two shapes do not fit: print x.shape before that line, for other sizes than the default too.",
    ),
    (
        r"Error while processing rearrange|EinopsError",
        "The pattern does not fit the shape: the named axes must multiply to the real ones.",
    ),
    (
        r"expected scalar type|must have the same dtype|[Ee]xpected .*(Float|Double|Long)",
        "Two tensors have different types: labels are int64, everything else float32.",
    ),
    (
        r"a leaf Variable that requires grad",
        "A parameter is changed in place: write y = x + ..., not x += ....",
    ),
    (
        r"modified by an inplace operation",
        "Something that backward() needs was changed in place: write y = x + ..., not x += ....",
    ),
    (
        r"backward through the graph a second time",
        "backward() was called twice for the same loss, or a loss of an earlier batch was kept: use .item().",
    ),
    (
        r"unexpected keyword argument|missing \d+ required|takes \d+ positional|takes from \d+ to",
        "The signatures are the template's: compare the names and the order of the arguments.",
    ),
    (
        r"object has no attribute",
        "Is it assigned in __init__, under exactly this name, after super().__init__()?",
    ),
    (r"cannot assign module before|cannot assign parameters before", "Call super().__init__() first."),
    (
        r"only one element tensors can be converted|can only convert",
        "One number is wanted here, and a tensor of several came: reduce it first, as with mean() or sum().",
    ),
)


def hint_of(kind: str, message: str) -> str:
    """What to look for when the student's code raised an exception; empty when it is no usual one.

    Args:
        kind: The exception's class name.
        message: Its text.
    """
    text = f"{kind}: {message}"
    return next((hint for pattern, hint in _HINTS if re.search(pattern, text)), "")
