"""Weights without pickles: what honest tools write is read, and nothing else; no length is believed."""

import io
import json
import struct
import zipfile
from typing import Any

import numpy as np
import pytest
import torch

from grader.intake.archive import checkpoint_fault
from grader.worker.loaded_weights import state_dict

MOST = 1_000_000
WEIGHTS = {
    "line.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "line.bias": torch.tensor([0.5, -1.0]),
    "norm.num_batches_tracked": torch.tensor(7),
    "half": torch.tensor([1.5, 2.0], dtype=torch.bfloat16),
    "mask": torch.tensor([True, False, True]),
    "nothing": torch.zeros(0, 4),
}
CODES = {torch.float32: "F32", torch.int64: "I64", torch.bfloat16: "BF16", torch.bool: "BOOL"}


def file_of(header: Any, content: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file of any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + content


def safetensors(weights: dict[str, torch.Tensor]) -> bytes:
    """The file that `safetensors.torch.save_file` writes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, value in weights.items():
        data = value.contiguous().flatten().view(torch.uint8).numpy().tobytes() if value.numel() else b""
        offsets = [len(content), len(content) + len(data)]
        header[name] = {"dtype": CODES[value.dtype], "shape": list(value.shape), "data_offsets": offsets}
        content += data
    return file_of(json.dumps(header).encode() + b"   ", content)


def entry(first: int, last: int, shape: Any = (2,), dtype: Any = "F32") -> dict[str, Any]:
    """What a header says of a tensor."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


def test_what_safetensors_writes_is_read() -> None:
    found = state_dict(safetensors(WEIGHTS), MOST)
    assert isinstance(found, dict) and found.keys() == WEIGHTS.keys()
    for name, value in WEIGHTS.items():
        assert found[name].dtype == value.dtype and torch.equal(found[name], value), name


@pytest.mark.parametrize(
    "data",
    [
        file_of(b"{}", length=2**63),
        file_of(b"{}", length=2**64 - 1),
        file_of(b"{" + b" " * 100, length=10_000),
        file_of({"a": entry(0, 8)}, b"1234567"),
        file_of({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)),
        file_of({"a": entry(0, 8), "b": entry(0, 8)}, bytes(8)),
        file_of({"a": entry(4, 12)}, bytes(12)),
        file_of({"a": entry(0, 8)}, bytes(9)),
        file_of({"a": entry(0, 2**60)}, bytes(8)),
        file_of({"a": entry(8, 0)}, bytes(8)),
        file_of({"a": entry(-8, 0)}, bytes(8)),
        file_of({"a": entry(0, 8, [2**40, 2**40])}, bytes(8)),
        file_of({"a": entry(0, 8, [-2])}, bytes(8)),
        file_of({"a": entry(0, 8, [2.0])}, bytes(8)),
        file_of({"a": entry(0, 8, [True, 2])}, bytes(8)),
        file_of({"a": entry(0, 8, "2")}, bytes(8)),
        file_of({"a": entry(0, 8, [1] * 9 + [2])}, bytes(8)),
        file_of({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)),
        file_of({"a": 3}, bytes(8)),
        file_of(b'{"a": ' + b"[" * 100_000),
        file_of(b'{"a": {"data_offsets": [0, 0]}, "a": {"data_offsets": [0, 0]}}'),
        file_of(b'{"\xff": 1}'),
        b"\x02\0\0\0\0\0\0\0{",
    ],
)
def test_malformed_headers_are_unreadable(data: bytes) -> None:
    assert state_dict(data, MOST) == "unreadable"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (file_of({"a": entry(0, 8, dtype="F7")}, bytes(8)), "odd_entry"),
        (file_of({"a": entry(0, 8, dtype=["F32"])}, bytes(8)), "odd_entry"),
        (file_of({"a": entry(0, 8, dtype="OBJECT")}, bytes(8)), "odd_entry"),
        (file_of({}), "no_state_dict"),
        (file_of({"__metadata__": {"format": "pt"}}), "no_state_dict"),
        (file_of({str(n): entry(0, 0, [0]) for n in range(5001)}), "no_state_dict"),
    ],
    ids=["dtype", "dtype no text", "objects", "empty", "metadata alone", "many"],
)
def test_what_else_is_no_state(data: bytes, why: str) -> None:
    assert state_dict(data, MOST) == why


def test_more_than_memory_allows_is_refused() -> None:
    weights = {"a": torch.zeros(300_000)}
    assert state_dict(safetensors(weights), MOST) == state_dict(npz(a=np.zeros(300_000)), MOST) == "too_large"


def npz(**arrays: Any) -> bytes:
    """The file that `numpy.savez` writes."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=True, **arrays)
    return stream.getvalue()


def zip_of(entries: dict[str, bytes]) -> bytes:
    """A zip of anything."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return stream.getvalue()


def array(shape: str, content: bytes, dtype: str = "<f4") -> bytes:
    """An entry of an `.npz` with any header."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def test_what_numpy_writes_is_read() -> None:
    big_endian = np.arange(3, dtype=">f4")
    by_column = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    found = state_dict(npz(**{"line.weight": by_column, "big": big_endian, "one": np.int64(3)}), MOST)
    assert isinstance(found, dict)
    assert torch.equal(found["line.weight"], WEIGHTS["line.weight"])
    assert found["big"].tolist() == [0, 1, 2] and found["one"].shape == ()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (npz(a=np.array([{}], dtype=object)), "odd_entry"),
        (npz(a=np.array(["text"])), "odd_entry"),
        (npz(a=np.zeros(2, dtype=np.complex64)), "odd_entry"),
        (npz(a=np.zeros(2, dtype=[("x", "f4")])), "odd_entry"),
        (zip_of({"a.npy": array("(1000000000000,)", b"1234")}), "unreadable"),
        (zip_of({"a.npy": array("(2,)", b"1234")}), "unreadable"),
        (zip_of({"a.npy": array("(-1,)", b"1234")}), "unreadable"),
        (zip_of({"a.npy": array("__import__('os').getpid(),", b"1234")}), "unreadable"),
        (zip_of({"a.npy": b"no array"}), "unreadable"),
        (zip_of({"a.npy": b"\x93NUMPY\x01\x00" + b"\xff\xff" + bytes(70_000)}), "unreadable"),
    ],
    ids=["object", "text", "complex", "record", "tera", "short", "negative", "code", "none", "header"],
)
def test_odd_arrays_are_refused(data: bytes, why: str) -> None:
    assert state_dict(data, MOST) == why


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.safetensors", safetensors(WEIGHTS), None),
        ("a.npz", npz(a=np.zeros(3)), None),
        ("a.safetensors", file_of(b"{}", length=2**60), "not in the format of safetensors"),
        ("a.safetensors", b"{}", "not in the format of safetensors"),
        ("a.safetensors", npz(a=np.zeros(3)), "not in the format of safetensors"),
        ("a.npz", safetensors(WEIGHTS), "is not a zip of arrays"),
        ("a.npz", zip_of({"a.npy": b"1", "run.py": b"2"}), "holds something other than NumPy arrays"),
        ("a.pth", safetensors(WEIGHTS), "is not a checkpoint of PyTorch"),
        ("a.pth", npz(a=np.zeros(3)), "not one that torch.save wrote"),
    ],
)
def test_intake_goes_by_the_suffix(name: str, data: bytes, said: str | None) -> None:
    found = checkpoint_fault(io.BytesIO(data), name)
    assert found is None if said is None else found is not None and said in found
