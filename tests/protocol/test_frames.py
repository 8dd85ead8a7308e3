"""Frames: what is written is read, and nothing that a hostile writer sends is believed or does harm."""

import io
import math
import tracemalloc
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.protocol.frames import (
    DTYPES,
    HEADER,
    MAX_ARRAYS,
    ClosedError,
    Frame,
    FrameLimit,
    ProtocolError,
    read_frame,
    write_frame,
)

LIMIT = FrameLimit(document=100_000, arrays=100_000)
Hostile = Callable[..., BinaryIO]


def written(frame: Frame) -> bytes:
    """The bytes of a frame."""
    stream = io.BytesIO()
    write_frame(stream, frame)
    return stream.getvalue()


def assert_same(first: Any, second: Any) -> None:
    """Arrays are the same in dtype, shape and bits."""
    assert first.dtype == second.dtype
    assert first.shape == second.shape
    np.testing.assert_array_equal(first, second)


def described(name: object = "a", dtype: object = "uint8", shape: object = (1,)) -> dict[str, object]:
    """A document that announces one array."""
    return {"$arrays": [{"name": name, "dtype": dtype, "shape": shape}]}


# --- what is written is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 3, 4), (1,) * 8], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_array_of_any_dtype_and_shape_arrives(dtype: str, shape: tuple[int, ...]) -> None:
    """Every dtype that frames carry, scalars and empty arrays included."""
    values = (np.random.default_rng(1).normal(size=shape) * 100).astype(dtype)
    frame = read_frame(io.BytesIO(written(Frame({"x": [1, None, "é"]}, {"a": values, "b": values}))), LIMIT)
    assert frame.document == {"x": [1, None, "é"]}
    assert list(frame.arrays) == ["a", "b"]
    for arrived in frame.arrays.values():
        assert_same(arrived, values)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-1],
        np.arange(24, dtype=np.int64).reshape(2, 3, 4).T,
        np.broadcast_to(np.float64(1.5), (3, 2)),
        np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        np.arange(3, dtype=">f4"),
        np.arange(3, dtype="<i8"),
        np.float32(2.5),
    ],
    ids=["strided", "transposed", "broadcast", "fortran", "big endian", "little endian", "scalar"],
)
def test_array_of_any_layout_arrives_with_its_values(values: Any) -> None:
    """A frame holds values in C order and native byte order, whatever they were in memory."""
    arrived = read_frame(io.BytesIO(written(Frame({}, {"a": values}))), LIMIT).arrays["a"]
    assert arrived.shape == np.shape(values)
    np.testing.assert_array_equal(arrived, values)


def test_frames_follow_each_other() -> None:
    """A frame ends where it says, so that the next one can be read."""
    stream = io.BytesIO(written(Frame({"n": 1}, {"a": np.zeros(3)})) + written(Frame({"n": 2})))
    assert [read_frame(stream, LIMIT).document["n"] for _ in range(2)] == [1, 2]
    with pytest.raises(ClosedError):
        read_frame(stream, LIMIT)


def test_stream_that_hands_out_single_bytes_is_read() -> None:
    """Pipes give what is there, not what was asked for."""

    class Trickle(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 1))

    frame = read_frame(Trickle(written(Frame({"x": 1}, {"a": np.arange(5)}))), LIMIT)
    np.testing.assert_array_equal(frame.arrays["a"], np.arange(5))


@pytest.mark.parametrize(
    "values", [np.zeros(2, dtype=complex), np.zeros(2, dtype=np.float16), np.array(["x"])]
)
def test_dtype_that_frames_do_not_carry_is_refused_on_writing(values: Any) -> None:
    """Nothing is written, so the stream stays usable."""
    stream = io.BytesIO()
    with pytest.raises(ProtocolError, match="dtype"):
        write_frame(stream, Frame({}, {"a": values}))
    assert stream.getvalue() == b""


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_number_that_is_not_json_is_never_written(number: float) -> None:
    """`NaN` is not JSON."""
    with pytest.raises(ValueError):
        written(Frame({"x": number}))


def test_writing_to_a_closed_stream_says_that_the_other_side_is_gone() -> None:
    """A link tells a death from nonsense by this."""
    stream = io.BytesIO()
    stream.close()
    with pytest.raises(ClosedError):
        write_frame(stream, Frame({}))


# --- nothing hostile is believed --------------------------------------------------------------------------


def test_frame_that_ends_early_is_closed_at_every_byte() -> None:
    """Death mid-frame is a death wherever it comes."""
    whole = written(Frame({"x": 1}, {"a": np.arange(3, dtype=np.int32), "b": np.zeros((), np.uint8)}))
    for length in range(len(whole)):
        with pytest.raises(ClosedError):
            read_frame(io.BytesIO(whole[:length]), LIMIT)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"nonsense",
        b"\xff\xfe{}",
        '{"x": 1}'.encode("utf-16"),
        b'{"x": NaN}',
        b'{"x": Infinity}',
        b'{"x": -Infinity}',
        b'{"x": 1e999}',
        b'{"x": -1e999}',
        b'{"x": ' + b"1" * 5000 + b"}",
        b"[" * 50_000,
        b'{"a":' * 15_000,
        b'{"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b"[]",
        b"1",
        b"null",
        b'"text"',
    ],
    ids=lambda text: repr(text[:24]),
)
def test_document_that_is_no_object_in_json_is_refused(document: bytes, hostile_frame: Hostile) -> None:
    """Neither other syntax, nor numbers that are not JSON or overflow, nor depth, nor other values."""
    with pytest.raises(ProtocolError, match="document"):
        read_frame(hostile_frame(document), LIMIT)


@pytest.mark.parametrize(
    ("document", "payload"),
    [
        (described(dtype="object"), b"x"),
        (described(dtype="float16"), b"xx"),
        (described(dtype="<f4"), b"xxxx"),
        (described(dtype="U1"), b"xxxx"),
        (described(dtype=["uint8"]), b"x"),
        (described(dtype=None), b"x"),
        (described(name=1), b"x"),
        (described(name=None), b"x"),
        (described(shape=[-1]), b"x"),
        (described(shape=[-1, -1]), b"x"),
        (described(shape=[1.0]), b"x"),
        (described(shape=[True]), b"x"),
        (described(shape=["1"]), b"x"),
        (described(shape=[None]), b"x"),
        (described(shape="1"), b"x"),
        (described(shape=1), b"x"),
        (described(shape={"0": 1}), b"x"),
        (described(shape=[1] * 9), b"x"),
        (described(shape=[2**40]), b"x"),
        (described(shape=[2**39, 2**39, 0]), b""),
        (described(shape=[2]), b"x"),
        (described(shape=[0]), b"x"),
        (described(dtype="float64"), b"x"),
        ({}, b"x"),
        ({"$arrays": None}, b""),
        ({"$arrays": {}}, b""),
        ({"$arrays": [1]}, b""),
        ({"$arrays": [[]]}, b""),
        ({"$arrays": [{"name": "a", "dtype": "uint8"}]}, b""),
        ({"$arrays": [{"name": str(n), "dtype": "uint8", "shape": [0]} for n in range(MAX_ARRAYS + 1)]}, b""),
    ],
    ids=lambda value: str(value)[:90],
)
def test_arrays_that_are_described_wrongly_are_refused(
    document: dict[str, Any], payload: bytes, hostile_frame: Hostile
) -> None:
    """Name, dtype, shape and size are checked, and must agree, before anything is made of the bytes."""
    with pytest.raises(ProtocolError) as caught:
        read_frame(hostile_frame(document, payload), FrameLimit(document=1_000_000, arrays=100))
    assert not isinstance(caught.value, ClosedError)


def test_two_arrays_of_the_same_name_are_refused(hostile_frame: Hostile) -> None:
    """Or the one that was checked might not be the one that is used."""
    twice = {"$arrays": described()["$arrays"] * 2}  # type: ignore[operator]
    with pytest.raises(ProtocolError, match="same name"):
        read_frame(hostile_frame(twice, b"xy"), LIMIT)


def test_wrong_magic_is_not_a_frame(hostile_frame: Hostile) -> None:
    """What a program prints must not look like a frame."""
    with pytest.raises(ProtocolError, match="not a frame"):
        read_frame(hostile_frame({}, magic=b"GRF2"), LIMIT)


@pytest.mark.parametrize(
    "sizes",
    [
        {"document_size": LIMIT.document + 1},
        {"arrays_size": LIMIT.arrays + 1},
        {"document_size": 2**32 - 1},
        {"arrays_size": 2**64 - 1},
    ],
    ids=str,
)
def test_frame_over_its_limit_is_refused_by_its_header(sizes: dict[str, int], hostile_frame: Hostile) -> None:
    """Not a byte of it is read."""
    stream = hostile_frame({}, **sizes)
    with pytest.raises(ProtocolError, match="larger than allowed"):
        read_frame(stream, LIMIT)
    assert stream.tell() == HEADER.size


def test_size_that_is_claimed_is_not_allocated(hostile_frame: Hostile) -> None:
    """A few bytes that claim gigabytes within the limit cost a few bytes."""
    size = 2**33
    stream = hostile_frame(described(shape=[size]), b"x", arrays_size=size)
    tracemalloc.start()
    try:
        with pytest.raises(ClosedError):
            read_frame(stream, FrameLimit(arrays=2**34))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


VALID = written(
    Frame(
        {"$kind": "Called", "result": "tensor", "n": [1, 2.5]},
        {"a": np.arange(6).reshape(2, 3), "b": np.zeros(1)},
    )
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_a_frame_or_refused(noise: bytes) -> None:
    """No other exception than ProtocolError, whatever comes; with the right magic as well."""
    for data in (noise, VALID[:16] + noise, VALID[:4] + noise):
        try:
            read_frame(io.BytesIO(data), LIMIT)
        except ProtocolError:
            continue


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_frame_with_changed_bytes_is_a_frame_or_refused(changes: list[tuple[int, int]]) -> None:
    """What still is a frame has arrays of the sizes that it says."""
    data = bytearray(VALID)
    for position, value in changes:
        data[position] = value
    try:
        frame = read_frame(io.BytesIO(bytes(data)), LIMIT)
    except ProtocolError:
        return
    assert isinstance(frame.document, dict)
    assert all(array.dtype.name in DTYPES for array in frame.arrays.values())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
LISTED = st.fixed_dictionaries(
    {},
    optional={
        "name": JSON,
        "dtype": st.sampled_from(DTYPES) | JSON,
        "shape": st.lists(st.integers(-1, 2**41), max_size=9) | JSON,
    },
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(LISTED, max_size=3) | JSON, st.binary(max_size=16))
def test_any_list_of_arrays_is_a_frame_or_refused(
    hostile_frame: Hostile, listed: object, payload: bytes
) -> None:
    """Whatever JSON announces the arrays."""
    try:
        read_frame(hostile_frame({"$arrays": listed}, payload), LIMIT)
    except ProtocolError:
        return
