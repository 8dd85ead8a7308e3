"""Trees of values as they cross between judge and worker: plain values, containers, tensors and arrays.

A tree is packed as JSON, its tensors and arrays travel beside it, and a plain value stands for itself.
Anything else is an object with one key: `list`, `tuple`, `set` (values), `dict` (pairs), `float` (nan, inf,
-inf), `int` (digits beyond 2**53), `bytes`, `array` (an array's name; `dtype` where frames do not carry
the type, `torch` for a tensor), `texts` (flat; with `shape`), `beyond` (why it was not sent). Either
side packs any other value as a node of its own. A model is made with plain values only.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grader.domain.errors import Interruption
from grader.protocol.frames import ProtocolError

Plain = bool | int | float | str | None

MAX_ARGUMENTS = 32  # of one construction, positional and named ones each
MAX_NUMBER = 2**53  # whole numbers stay below, where a float can hold each of them
MAX_TEXT = 200  # characters


@dataclass(frozen=True)
class ModelMade:
    """The arguments with which a model was made: plain values alone."""

    args: tuple[Plain, ...] = ()
    kwargs: dict[str, Plain] = field(default_factory=dict)

    @property
    def is_small(self) -> bool:
        """Whether there are few arguments, each within the sizes above."""
        if max(len(self.args), len(self.kwargs)) > MAX_ARGUMENTS:
            return False
        return all(map(is_small, (*self.kwargs, *self.args, *self.kwargs.values())))


@dataclass(frozen=True)
class OtherValues:
    """Values that a script is given in place of its own, by the names of arguments.

    Attributes:
        model: Whenever it makes a model of the class that is measured.
        function: The graded function whose calls are changed.
        given: Whenever it calls that function.
    """

    model: dict[str, Plain] = field(default_factory=dict)
    function: str = ""
    given: dict[str, Plain] = field(default_factory=dict)


def is_small(value: Plain) -> bool:
    """Whether a value is within the sizes above, and finite."""
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or abs(value) < MAX_NUMBER


# --- trees -----------------------------------------------------------------------------------------------


Node = Any  # JSON
Beyond = str  # one of BEYOND

MAX_VALUES = 50_000  # in a tree
MAX_KEYS = 10_000  # of one dictionary or set: those whose hashes are the same are compared with each other
MAX_DEPTH = 30
MAX_TREE_TEXT = 200_000  # characters of one text
MAX_TREE_ARRAYS = 4000
MAX_BYTES = 200_000_000  # of all arrays
MAX_DIGITS = 300
BEYOND = {
    "values": "more values than can be looked at",
    "depth": "nested too deeply",
    "bytes": "more numbers than can be looked at",
    "text": "a text that is too long to be looked at",
    "digits": "a number of too many digits",
}
_EXACT = 2**53
_CARRIED = ("float32", "float64", "int64", "int32", "uint8", "bool")
# a type that frames do not carry -> the one that holds each of its numbers
_WIDER = {
    **dict.fromkeys(("float16", "bfloat16"), "float32"),
    **dict.fromkeys(("int8", "int16", "uint16"), "int32"),
    "uint32": "int64",
    **dict.fromkeys(("complex64", "complex128"), "float64"),  # a last axis of real and imaginary part
}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class TooMuchError(Interruption):
    """A value is more than a tree may hold.

    Attributes:
        beyond: In which way, one of BEYOND.
    """

    def __init__(self, beyond: Beyond) -> None:
        super().__init__(beyond)
        self.beyond = beyond


@dataclass(frozen=True)
class TooMuch:
    """In place of a value that was more than a tree may hold."""

    beyond: Beyond

    @property
    def in_words(self) -> str:
        """What there is, for messages."""
        return BEYOND[self.beyond]


class Packer:
    """Packs values into nodes; the arrays of all of them are together.

    Attributes:
        arrays: By name, as the nodes refer to them.
        attached: Whether a tensor that still belongs to a graph of gradients was packed.
    """

    def __init__(self, other: Callable[[Any], Node], most_bytes: int = MAX_BYTES) -> None:
        """Nothing is packed yet.

        Args:
            other: The node of a value that is neither plain nor a container, tensor or array.
            most_bytes: Of all arrays.
        """
        self.arrays: dict[str, Any] = {}
        self.attached = False
        self._other = other
        self._most_bytes = most_bytes
        self._values = self._bytes = 0

    def bounded_node(self, value: Any) -> Node:
        """The node of a value, or one that says that the value is too much."""
        before = dict(self.arrays), self._values, self._bytes
        try:
            return self.node(value)
        except TooMuchError as error:
            self.arrays, self._values, self._bytes = before
            return {"beyond": error.beyond}

    def call_node(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Node:
        """The node of a call's arguments, a pair; one that is too much leaves the others as they are."""
        named = [[name, self.bounded_node(value)] for name, value in kwargs.items()]
        return {"tuple": [{"tuple": [self.bounded_node(value) for value in args]}, {"dict": named}]}

    def node(self, value: Any, depth: int = 0) -> Node:
        """The node of a value; an iterator is that of a list, and is used up.

        Raises:
            TooMuchError: It is more than a tree may hold.
        """
        self._values += 1
        if self._values > MAX_VALUES:
            raise TooMuchError("values")
        if depth > MAX_DEPTH:
            raise TooMuchError("depth")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, np.generic) and not isinstance(value, np.str_ | np.bytes_ | np.void):
            value = value.item()  # a NumPy number: Python's are as good
        match value:
            case bool():
                return value
            case int():
                return _whole(int(value))
            case float():
                return float(value) if math.isfinite(value) else {"float": str(float(value))}
            case complex():
                return {"tuple": [self.node(value.real, depth + 1), self.node(value.imag, depth + 1)]}
            case str():
                return _text(str(value))
            case bytes() | bytearray():
                return {"bytes": self._stored_name(np.frombuffer(bytes(value), dtype=np.uint8))}
            case list():
                return {"list": self._each(value, depth)}
            case tuple():
                return {"tuple": self._each(value, depth)}
            case Iterator():
                return {"list": self._each(itertools.islice(value, MAX_VALUES + 1), depth)}
            case set() | frozenset():
                return {"set": self._each(_keys(value), depth)}
            case Mapping():
                return {"dict": [self._each(pair, depth) for pair in _keys(value.items())]}
            case np.ndarray():
                return self._array(value)
        if _is_tensor(value):
            return self._tensor(value)
        return self._other(value)

    def array_node(self, value: Any, *, tensor: bool) -> Node:
        """The node of a NumPy array of a type that frames carry.

        Args:
            tensor: It arrives as a tensor.

        Raises:
            TooMuchError: It is more than a tree may hold.
        """
        name = self._stored_name(value)
        return {"array": name, "torch": True} if tensor else {"array": name}

    def _each(self, values: Any, depth: int) -> list[Node]:
        return [self.node(value, depth + 1) for value in values]

    def _array(self, value: Any) -> Node:
        if value.dtype.kind in "US":
            if value.size > MAX_VALUES - self._values:
                raise TooMuchError("values")
            self._values += value.size
            return {"texts": [_text(str(text)) for text in value.reshape(-1)], "shape": list(value.shape)}
        name = value.dtype.name
        if name in _CARRIED:
            return {"array": self._stored_name(value)}
        if name not in _WIDER:
            return self._other(value)
        wide = np.stack([value.real, value.imag], axis=-1) if value.dtype.kind == "c" else value
        return {"array": self._stored_name(wide.astype(_WIDER[name])), "dtype": name}

    def _tensor(self, value: Any) -> Node:
        import torch

        self.attached = self.attached or bool(value.requires_grad)
        flat = value.detach().to("cpu")
        if flat.is_complex():
            flat = torch.view_as_real(flat.resolve_conj()).to(torch.float64)
        name = str(value.dtype).removeprefix("torch.")
        if name not in _CARRIED and name not in _WIDER:
            return self._other(value)
        if name in _WIDER:
            flat = flat.to(getattr(torch, _WIDER[name]))
        node = {"array": self._stored_name(flat.contiguous().resolve_neg().numpy()), "torch": True}
        return node if name in _CARRIED else {**node, "dtype": name}

    def _stored_name(self, value: Any) -> str:
        self._bytes += value.nbytes
        if self._bytes > self._most_bytes or len(self.arrays) >= MAX_TREE_ARRAYS:
            raise TooMuchError("bytes")
        name = f"tree{len(self.arrays)}"
        self.arrays[name] = value.copy()  # the array of which it is a view may change later
        return name


class Unpacker:
    """Unpacks nodes into values, and believes nothing of them."""

    def __init__(
        self, arrays: Mapping[str, Any], other: Callable[[dict[str, Any]], Any], *, tensors: bool = True
    ) -> None:
        """Nothing is unpacked yet.

        Args:
            arrays: Of the message.
            other: The value of a node that the other side defines; it raises ProtocolError if it is not one.
            tensors: Make tensors of tensors; else arrays.
        """
        self._arrays = arrays
        self._tensors = tensors
        self._other = other
        self._values = 0

    def value(self, node: Node, depth: int = 0) -> Any:
        """The value of a node.

        Raises:
            ProtocolError: It is not a node.
        """
        self._values += 1
        if self._values > 2 * MAX_VALUES or depth > MAX_DEPTH + 1:
            raise ProtocolError("a tree is larger than allowed")
        match node:
            case None | bool() | float():
                return node
            case int() if abs(node) <= _EXACT:
                return node
            case str() if len(node) <= MAX_TREE_TEXT:
                return node
            case {"list": list(values)} if len(node) == 1:
                return self._each(values, depth)
            case {"tuple": list(values)} if len(node) == 1:
                return tuple(self._each(values, depth))
            case {"set": list(values)} if len(node) == 1 and len(values) <= MAX_KEYS:
                return self._hashable(frozenset, values, depth)
            case {"dict": list(pairs)} if (
                len(node) == 1 and len(pairs) <= MAX_KEYS and all(map(_is_pair, pairs))
            ):
                return self._hashable(dict, [{"tuple": pair} for pair in pairs], depth)
            case {"float": ("nan" | "inf" | "-inf") as name} if len(node) == 1:
                return _SPECIAL[name]
            case {"int": str(digits)} if len(node) == 1 and len(digits) <= MAX_DIGITS + 1:
                return _digits(digits)
            case {"bytes": str(name)} if len(node) == 1:
                return self._array(name, "uint8").tobytes()
            case {"array": str(name)} if set(node) <= {"array", "dtype", "torch"}:
                return self._typed_array(name, node)
            case {"texts": list(texts), "shape": list(shape)} if len(node) == 2:
                return _texts(texts, shape)
            case {"beyond": str(why)} if len(node) == 1 and why in BEYOND:
                return TooMuch(why)
            case dict():
                return self._other(node)
        raise ProtocolError("a tree holds something that is not a value")

    def _each(self, nodes: list[Node], depth: int) -> list[Any]:
        return [self.value(node, depth + 1) for node in nodes]

    def _hashable(self, made: Callable[[Any], Any], nodes: list[Node], depth: int) -> Any:
        try:
            return made(self._each(nodes, depth))
        except TypeError as error:
            raise ProtocolError("a tree has a key that cannot be one") from error

    def _array(self, name: str, dtype: str = "") -> Any:
        array = self._arrays.get(name)
        if not isinstance(array, np.ndarray) or (dtype and array.dtype.name != dtype):
            raise ProtocolError("a tree misses an array")
        return array

    def _typed_array(self, name: str, node: dict[str, Any]) -> Any:
        dtype, torch_wanted = node.get("dtype", ""), node.get("torch", False)
        if dtype and dtype not in _WIDER:
            raise ProtocolError("a tree has an array of an unknown type")
        array = self._array(name, _WIDER[dtype] if dtype else "").copy()
        if dtype.startswith("complex") and array.shape[-1:] != (2,):
            raise ProtocolError("a tree has complex numbers of another shape")
        if torch_wanted is not True or not self._tensors:
            if dtype == "bfloat16" and not self._tensors:
                return array
            if dtype == "bfloat16":
                raise ProtocolError("a tree has an array of an unknown type")
            if dtype.startswith("complex"):
                return (array[..., 0] + 1j * array[..., 1]).astype(dtype)
            return array.astype(dtype) if dtype else array
        import torch

        tensor = torch.from_numpy(array)
        if dtype.startswith("complex"):
            return torch.view_as_complex(tensor).to(getattr(torch, dtype))
        if dtype in ("uint16", "uint32"):
            return tensor.to(torch.int64)  # torch computes little with its own
        return tensor.to(getattr(torch, dtype)) if dtype else tensor


def _keys(values: Any) -> Any:
    if len(values) > MAX_KEYS:
        raise TooMuchError("values")
    return values


def _whole(value: int) -> Node:
    if abs(value) <= _EXACT:
        return value
    if value.bit_length() > 3 * MAX_DIGITS:  # 3 bits are less than a digit
        raise TooMuchError("digits")
    return {"int": str(value)}


def _digits(text: str) -> int:
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit():
        raise ProtocolError("a tree has digits that are none")
    return int(text)


def _text(text: str) -> str:
    if len(text) > MAX_TREE_TEXT:
        raise TooMuchError("text")
    return text.encode("utf-8", "replace").decode("utf-8")  # without halves of surrogate pairs


def _texts(texts: list[Any], shape: list[Any]) -> Any:
    sides = [side for side in shape if type(side) is int and 0 <= side <= MAX_VALUES]
    short = all(isinstance(text, str) and len(text) <= MAX_TREE_TEXT for text in texts)
    if not short or len(sides) != len(shape) or len(shape) > 8 or math.prod(sides) != len(texts):
        raise ProtocolError("a tree has texts of another shape")
    # as objects: an array of texts proper takes, for each, the memory of the longest
    return np.array(texts, dtype=object).reshape(sides)


def _is_pair(node: Node) -> bool:
    return isinstance(node, list) and len(node) == 2


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
