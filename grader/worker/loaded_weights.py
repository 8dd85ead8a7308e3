"""Weights as data in a student's model: those of a training, or of a submitted file.

Only tensors and plain containers are unpickled, and nothing of `.safetensors` (8 bytes with the header's
length, little endian, the header in JSON, the tensors' bytes without a gap) and of `.npz`. Every length is
compared with the file before it is used. It decides whether a file is readable and whether weights fit the
class; anything else is refused with a reason. `grader.training` measures what the
weights reach, and `grader.scoring` decides what that is worth.

Tests: tests/training/test_augmented_evaluation.py, tests/worker/test_checkpoint.py,
tests/worker/test_plain_weights.py
"""

import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from grader.protocol.replies import (
    HANDED_OUT_BATCH_SIZE,
    Answered,
    CheckpointFault,
    CheckpointLoaded,
    Measurable,
    Misfit,
)
from grader.protocol.requests import STATE, Answer, LoadCheckpoint, MeasureModel
from grader.worker.graded_images import GradedImages
from grader.worker.made_loaders import made_loaders
from grader.worker.model_outputs import (
    answers,
    array,
    attention,
    logits,
    module_tree,
    same_random_numbers,
    unwrapped_names,
)
from grader.worker.student_environment import usable_device
from grader.worker.student_faults import students_code
from grader.worker.student_module import StudentModule
from grader.worker.training_setup import configured_model, transforms
from grader.worker.transforms import without_chance

MOST_HEADER = 4_000_000  # bytes
MOST_ARRAYS = 5000
MOST_DIMENSIONS = 8
_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NUMPY = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "b1")


def is_safetensors(data: bytes) -> bool:
    """Whether a file begins like a safetensors file."""
    return data[_LENGTH.size : _LENGTH.size + 1] == b"{"


def is_npz(data: bytes) -> bool:
    """Whether a file is a zip archive of NumPy arrays."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError):
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def safetensors_weights(data: bytes, max_bytes: int) -> dict[str, Tensor] | CheckpointFault:
    """The tensors of a safetensors file by name, or why it cannot be read.

    Args:
        data: The file.
        max_bytes: How much all tensors may take.
    """
    if len(data) > max_bytes:
        return "too_large"
    entries = _header(data)
    if entries is None:
        return "unreadable"
    if not entries or len(entries) > MOST_ARRAYS:
        return "no_state_dict"
    begin = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    tensors: dict[str, Tensor] = {}
    position = 0  # tensors follow each other: each byte belongs to one
    for name, entry in sorted(entries.items(), key=lambda item: _offsets(item[1])):
        dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry.get("dtype"), str) else None
        if dtype is None:
            return "odd_entry"
        shape, (first, last) = _shape(entry.get("shape")), _offsets(entry)
        if shape is None or first != position or last > len(data) - begin:
            return "unreadable"
        if last - first != math.prod(shape) * dtype.itemsize:
            return "unreadable"
        tensors[name] = _tensor(data[begin + first : begin + last], dtype, shape)
        position = last
    return tensors if position == len(data) - begin else "unreadable"


def _header(data: bytes) -> dict[str, dict[str, Any]] | None:
    """The entries of the header, each a table; None if there is no such header."""
    if len(data) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(data)
    if not 2 <= length <= min(MOST_HEADER, len(data) - _LENGTH.size):
        return None
    try:
        text = data[_LENGTH.size : _LENGTH.size + length].decode("utf-8")
        header = json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict):
        return None
    header.pop(_METADATA, None)
    if not all(isinstance(entry, dict) and _offsets(entry) != (-1, -1) for entry in header.values()):
        return None
    return header


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object in which no key occurs twice.

    Raises:
        ValueError: A key does.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made


def _offsets(entry: dict[str, Any]) -> tuple[int, int]:
    """Where an entry's bytes begin and end; (-1, -1) if it does not say."""
    match entry.get("data_offsets"):
        case [int(first), int(last)] if 0 <= first <= last and bool not in (type(first), type(last)):
            return first, last
    return -1, -1


def _shape(sides: object) -> list[int] | None:
    """The shape that a file states; None if it cannot be one."""
    if not isinstance(sides, list) or len(sides) > MOST_DIMENSIONS:
        return None
    return sides if all(type(side) is int and 0 <= side < 2**40 for side in sides) else None


def _tensor(content: bytes, dtype: torch.dtype, shape: list[int]) -> Tensor:
    if not content:
        return torch.zeros(shape, dtype=dtype)
    if dtype == torch.bool:  # a byte of a boolean is 0 or 1, whatever the file says
        return torch.frombuffer(bytearray(content), dtype=torch.uint8).ne(0).reshape(shape)
    return torch.frombuffer(bytearray(content), dtype=dtype).reshape(shape)


def npz_weights(data: bytes, max_bytes: int) -> dict[str, Tensor] | CheckpointFault:
    """The arrays of an `.npz` file by name, or why it cannot be read.

    Args:
        data: The file.
        max_bytes: How much all arrays may take, unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if not entries or len(entries) > MOST_ARRAYS:
                return "no_state_dict"
            if sum(entry.file_size for entry in entries) > max_bytes:
                return "too_large"
            tensors: dict[str, Tensor] = {}
            for entry in entries:
                with archive.open(entry) as file:
                    tensor = _array(file.read(entry.file_size))
                if isinstance(tensor, str):
                    return tensor
                tensors[entry.filename.removesuffix(".npy")] = tensor
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, RuntimeError, NotImplementedError):
        return "unreadable"
    return tensors if len(tensors) == len(entries) else "unreadable"


def _array(content: bytes) -> Tensor | CheckpointFault:
    """One array, whose header must match its bytes exactly.

    Raises:
        ValueError: It is not a NumPy array.
    """
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        return "unreadable"
    if dtype.str[1:] not in _NUMPY:
        return "odd_entry"
    values = content[stream.tell() :]
    if _shape(list(shape)) is None or math.prod(shape) * dtype.itemsize != len(values):
        return "unreadable"
    flat = np.frombuffer(values, dtype=dtype)
    array = flat.reshape(shape, order="F" if by_column else "C")
    return torch.from_numpy(np.array(array, dtype=dtype.newbyteorder("="), order="C"))


# --- measuring -------------------------------------------------------------------------------------------


class Measuring:
    """The student's model as its source configures it, and the images that it answers for."""

    def __init__(self, student: StudentModule, request: MeasureModel) -> None:
        """Build the model.

        Raises:
            RecipeError: The source has none.
            StudentFault: The student's code raised.
        """
        self._device = usable_device(request.device, request.gpu_memory_mb)
        labels = request.arrays["train_labels"].tolist()
        self._model = configured_model(student, labels, self._device, seed=request.seed, made=request.made)
        made = made_loaders(student, request.arrays["glimpse"])
        _, transform = transforms(student, made, [], request.arrays["test_images"][0])
        self._classes = request.class_names
        test, classes = request.arrays["test_images"], request.class_names
        with students_code():  # deterministic transforms, which are the student's, are applied here
            self._certain = certain = without_chance(transform, test[0])
            self._test = GradedImages(test, None, classes, certain)
            self._augmented = None
            if certain is not transform:
                self._augmented = GradedImages(test, None, classes, transform)

    def measurable(self) -> Measurable:
        """The reply to MeasureModel."""
        return Measurable(module_tree(self._model))

    def answered(self, request: Answer) -> Answered:
        """The reply to Answer.

        Raises:
            StudentFault: The model raised, or returns something else.
        """
        weights = {
            name.removeprefix(STATE): torch.from_numpy(value.copy())
            for name, value in request.arrays.items()
            if name.startswith(STATE)
        }
        with students_code():
            why = misfit(self._model, weights)
            if why is not None:
                return Answered(why)
            self._model.load_state_dict(weights)
        return Answered(arrays=self._outputs(request))

    def _outputs(self, request: Answer) -> dict[str, Any]:
        outputs: dict[str, Any] = {}
        with same_random_numbers():
            outputs["logits"] = self._logits(self._test)
            if self._augmented is not None:
                outputs["augmented"] = self._logits(self._augmented)
            if "probe" in request.arrays:
                probe = torch.from_numpy(request.arrays["probe"].copy())
                outputs["probe_logits"] = answers(self._model, [probe], self._device, len(self._test.classes))
            if "seen" in request.arrays:
                with students_code():
                    seen_images = GradedImages(
                        request.arrays["seen"].copy(), None, self._classes, self._certain
                    )
                outputs["seen_logits"] = self._logits(seen_images)
        if request.attention_of:
            weights = attention(self._model, self._test, self._device, request.attention_of)
            outputs |= {} if weights is None else {"attention": weights}
        if request.inputs_of:
            with students_code():
                fed = torch.cat([self._test.batch(index, index + 1) for index in request.inputs_of])
                outputs["inputs"] = array(fed.float())
        return outputs

    def _logits(self, images: GradedImages) -> Any:
        return logits(self._model, images, self._device, HANDED_OUT_BATCH_SIZE)


def _entries(example: str, names: Iterable[str]) -> int:
    """How many entries the first numbered list in a tensor's name has among all names; 0 without a list."""
    numbered = re.match(r"(.*?)\b\d+\.", example)
    if numbered is None:
        return 0
    entry = re.compile(rf"{re.escape(numbered[1])}(\d+)\.")
    return len({match[1] for match in map(entry.match, names) if match is not None})


def misfit(model: nn.Module, weights: Mapping[str, Tensor]) -> Misfit | None:
    """What keeps weights from fitting a model; None when they fit."""
    expected = model.state_dict()
    missing = [name for name in expected if name not in weights]
    unknown = [name for name in weights if name not in expected]
    if missing or unknown:
        example = [*missing, *unknown][0]
        entries = _entries(example, weights), _entries(example, expected)
        shown_entries = entries if all(entries) else ()
        return Misfit(len(missing), len(unknown), len(expected), example, entries=shown_entries)
    for name, value in expected.items():
        # a lazy layer accepts any shape
        if not is_lazy(value) and weights[name].shape != value.shape:
            return Misfit(0, 0, len(expected), name, (tuple(weights[name].shape), tuple(value.shape)))
    return None


# --- checkpoint ------------------------------------------------------------------------------------------


NESTED = ("state_dict", "model_state_dict", "model")
MAX_TENSORS = 5000
WHOLE_MODEL: Literal["whole_model"] = "whole_model"


def checkpoint_loaded(student: StudentModule, request: LoadCheckpoint) -> CheckpointLoaded:
    """Load a checkpoint into the student's model and answer for the images.

    Raises:
        RecipeError: The source has no model.
        StudentFault: The student's code raised.
    """
    weights = state_dict(request.arrays["file"].tobytes(), request.max_bytes)
    if weights == WHOLE_MODEL:
        return CheckpointLoaded("whole_model")
    if isinstance(weights, str):
        return CheckpointLoaded("refused", weights)
    device = usable_device(request.device)
    model = configured_model(student)
    with students_code():
        wrong = misfit(model, weights)
    if wrong is not None:
        return CheckpointLoaded("mismatch", misfit=wrong)
    with students_code():
        model.load_state_dict(weights)
        model.to(device)
    made = made_loaders(student, request.arrays["glimpse"])
    _, transform = transforms(student, made, [], request.arrays["test_images"][0])
    with students_code():  # a deterministic transform is applied here
        images = GradedImages(request.arrays["test_images"], None, student.class_names, transform)
    return CheckpointLoaded("fits", arrays={"logits": logits(model, images, device)})


def state_dict(data: bytes, max_bytes: int) -> dict[str, Tensor] | CheckpointFault | Literal["whole_model"]:
    """The weights in a checkpoint file, or why it cannot be read.

    Only tensors and plain containers are unpickled (`weights_only`). The sizes that tensors claim are
    checked, because a stride of 0 makes a small file claim terabytes.
    """
    if is_safetensors(data) or is_npz(data):
        read = safetensors_weights if is_safetensors(data) else npz_weights
        weights = read(data, max_bytes)
        return weights if isinstance(weights, str) else unwrapped_names(weights)
    try:
        loaded: Any = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        # PyTorch's word if a file names a class or function; the rest of its message never varies
        if "GLOBAL" in str(error):
            return WHOLE_MODEL
        return "unreadable"
    for key in NESTED:
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
            break
    if not isinstance(loaded, dict) or not loaded or len(loaded) > MAX_TENSORS:
        return "no_state_dict"
    total = 0
    for name, value in loaded.items():
        if not isinstance(name, str) or not _is_plain(value):
            return "odd_entry"
        total += value.numel() * value.element_size()
        if total > max_bytes or value.numel() * value.element_size() > value.untyped_storage().nbytes():
            return "too_large"
    return unwrapped_names(loaded)


def _is_plain(value: object) -> bool:
    """Whether it is a tensor with numbers of its own: not sparse, quantized, or on the device `meta`."""
    return (
        type(value) is Tensor
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )
