"""Missing pretrained weights: which file a library looked for and would have downloaded.

It goes by the functions that raised (torch.hub, huggingface_hub, timm) and their local variables, else by the
file name in the message. Where these do not tell, the result is empty. The assignment decides whether the
course provides the file; `grader.protocol.raised` words the sentence about it.

Tests: tests/worker/test_wanted.py
"""

import ntpath
import re
import traceback
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from grader.domain.assignment import HUB, TORCH

MOST_ERRORS = 10  # of a chain of exceptions, each the reason of the one before
SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".npz", ".h5")
_MISSING = re.compile(r"No such file or directory: ['\"]?(?P<path>[^'\"]+)")
# what timm asks for where there are no weights under the name that it asks for first
_FIRST, _SECOND = "model.safetensors", "pytorch_model.bin"

_Calls = list[tuple[str, str, Mapping[str, Any]]]  # module, function and local variables, innermost last


def wanted_file(error: BaseException) -> str:
    """Where an assignment would provide the file that was asked for and is not there.

    The libraries' own exceptions are recognized by the functions that raised them: the words of some name no
    file, and not all are of one class wherever they are raised.

    Args:
        error: What the student's code raised, or a library for it.

    Returns:
        The place in a cache (`torch/hub/checkpoints/vit.pth`, `huggingface/OWNER/NAME/model.safetensors`), or
        the name of a file for the working folder; empty: it is about something else.
    """
    for each in _chain(error):
        if not isinstance(each, OSError):
            continue
        calls: _Calls = [
            (_text(frame.f_globals, "__name__"), frame.f_code.co_name, frame.f_locals)
            for frame, _ in traceback.walk_tb(BaseException.__dict__["__traceback__"].__get__(each))
        ]
        if found := _of_torch_hub(calls) or _of_hugging_face(calls) or _of_working_folder(each):
            return found
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that it was raised for; a class of the student's is asked nothing."""
    each: BaseException | None = error
    for _ in range(MOST_ERRORS):
        if each is None:
            return
        yield each
        cause = BaseException.__dict__["__cause__"].__get__(each)
        each = cause if cause is not None else BaseException.__dict__["__context__"].__get__(each)


def _of_torch_hub(calls: _Calls) -> str:
    for module, function, values in calls:
        if module != "torch.hub" or function != "load_state_dict_from_url":
            continue
        name = _text(values, "file_name") or urlsplit(_text(values, "url")).path.rpartition("/")[2]
        folder = _text(values, "model_dir").replace("\\", "/")
        if not name:
            return ""
        in_cache = not folder or folder.endswith("/hub/checkpoints")
        return f"{TORCH}/hub/checkpoints/{name}" if in_cache else name
    return ""


def _of_hugging_face(calls: _Calls) -> str:
    asked = ""
    for module, function, values in calls:
        if not module.startswith("huggingface_hub."):
            continue
        if function in ("hf_hub_download", "snapshot_download") and _text(values, "repo_id"):
            if _text(values, "repo_type") not in ("", "model"):
                return ""
            asked = "/".join(filter(None, (HUB, _text(values, "repo_id"), _text(values, "filename"))))
    by_timm = any(module.startswith("timm.") for module, _, _ in calls)
    if by_timm and asked.endswith(f"/{_SECOND}"):
        return asked.removesuffix(_SECOND) + _FIRST
    return asked


def _of_working_folder(error: OSError) -> str:
    """Weights that a file was to be opened for, by the name that it would have beside the homework."""
    if not isinstance(error, FileNotFoundError):
        return ""
    try:
        said = _MISSING.search(str(error)[:1000])
    except Exception:
        return ""
    name = ntpath.basename(said["path"].strip()) if said is not None else ""
    return name if name.lower().endswith(SUFFIXES) else ""


def _text(values: Mapping[str, Any], name: str) -> str:
    """A local variable that is a text; empty where there is none, or something else."""
    value = values.get(name)
    return value if type(value) is str else ""
