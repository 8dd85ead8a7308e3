"""Thousands of hostile messages: each is a message or a ProtocolError, at a bounded price."""

import io
import json
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.domain.analyzed_program import Program
from grader.domain.errors import EngineError
from grader.domain.evidence import Attestation
from grader.domain.formatting import Said
from grader.domain.program_run import Ending, Prying
from grader.protocol.frames import ARRAYS_KEY, DTYPES, HEADER, MAGIC, FrameLimit, ProtocolError
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import (
    AffineFakeCall,
    Answered,
    Axes,
    Built,
    Called,
    CheckpointLoaded,
    Done,
    DrawnFigure,
    EpochDone,
    FakeCalled,
    FakeConstruction,
    ForwardPass,
    Imported,
    Invoked,
    Loaded,
    Measurable,
    Misfit,
    Module,
    Notice,
    Parameter,
    Problem,
    Raised,
    Ran,
    Reached,
    Reply,
    Seen,
    Stepped,
    Trained,
    TrainingPlan,
    Tried,
    WatchedPart,
    Watching,
    WeightValues,
)
from grader.protocol.requests import Load
from grader.protocol.trees import ModelMade
from grader.protocol.typed_messages import KIND_KEY, REQUESTS, receive, send

REPLIES: tuple[type[Any], ...] = (*Reply.__args__, *Notice.__args__)
LIMIT = FrameLimit(document=100_000, arrays=100_000)
SETTINGS = settings(deadline=None, derandomize=True, database=None)

VALID: list[Any] = [
    Raised(Problem("ValueError", Said("no"), "cell 4, line 3", "disk"), "recipe", "no_model"),
    Loaded({"ViT": "class"}, (Problem("NameError", Said("x")),), ("torchsummary",)),
    Built(
        1,
        (Parameter("w", (2, 3), False, ("w", "v")),),
        (Module("", "ViT", "homework", 6, 0.1),),
        (FakeConstruction("Attention", (8, None, 0.5, True), {"heads": 4}),),
    ),
    Called(
        "tensor",
        (AffineFakeCall("Attention", 1, (2, 3)),),
        ("w",),
        (1,),
        {"output": np.ones((2, 3), np.float32), "call0": np.zeros((2, 3))},
    ),
    FakeCalled(0, 1, True, False, {"list": [{"array": "tree0"}]}, {"tree0": np.zeros(2)}),
    Invoked({"dict": [["a", 1]]}, "loss", ({"same": True},), {"b": None}, (None,), True, False, ("m.csv",)),
    WeightValues({"w": np.zeros(2), "n": np.arange(3), "m": np.zeros((2, 2), dtype=bool)}),
    Done(),
    Ran(
        "loss 0.5",
        "float",
        False,
        True,
        1,
        ("forward",),
        (0, 1),
        figures=(
            DrawnFigure(0, "t", (Axes("t", x_ticks=("1",), images=(0,), bars=(0.5,), bar_names=("1",)),)),
        ),
        arrays={"returned": np.zeros(1), "history": np.zeros(0)},
    ),
    ForwardPass(2, True, False, (1, 2)),
    TrainingPlan(3, 64, "AdamW", "StepLR", "cpu", ("transform",)),
    EpochDone(
        1,
        0.1,
        2,
        "homework.py:7",
        "AdamW",
        "StepLR",
        499,
        True,
        (Module("", "ViT", "homework", 6),),
        3,
        24,
        8,
        ModelMade((1,), {"dim": 8}),
        {"state:w": np.zeros((1, 2), np.float32)},
    ),
    Stepped(24, 8),
    Trained(3, 1, (Module("", "ViT", "homework", 6),), 5, 7, True, {"state:w": np.zeros(2, np.float32)}),
    Measurable((Module("", "ViT", "homework", 6),)),
    Answered(Misfit(1, 2, 3, "w", ((2,), (3,))), {"logits": np.zeros((1, 2), np.float32)}),
    CheckpointLoaded("mismatch", "", Misfit(1, 2, 3, "w", ((2,), (3,)))),
    Watching((WatchedPart("torch.nn.Identity", ("torch.nn.Id*",)),)),
    Reached(0, -1, "cell 4", 3),
    Tried(0, 7),
    Imported(1, "homework.py", 2),
    Seen(Prying.FRAMES, "homework.py", 2),
]


def written(message: Any) -> bytes:
    """A message's frame."""
    stream = io.BytesIO()
    send(stream, message)
    return stream.getvalue()


FRAMES = [written(message) for message in VALID]


def document_of(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """A frame's document, with its arrays' bytes."""
    _, size, _ = HEADER.unpack(frame[: HEADER.size])
    return json.loads(frame[HEADER.size : HEADER.size + size]), frame[HEADER.size + size :]


def framed(document: Any, payload: bytes) -> bytes:
    """A frame of any document."""
    text = json.dumps(document).encode()
    return HEADER.pack(MAGIC, len(text), len(payload)) + text + payload


def taken(data: bytes) -> Any:
    """The message in the bytes, or None when they are refused as they should be."""
    try:
        message = receive(io.BytesIO(data), (*REPLIES, *REQUESTS), LIMIT)
    except ProtocolError:
        return None
    assert type(message) in (*REPLIES, *REQUESTS)
    for value in getattr(message, "arrays", {}).values():
        assert value.dtype.name in DTYPES and value.nbytes <= LIMIT.arrays
    return message


def test_there_is_a_valid_example_of_every_reply() -> None:
    assert {type(message) for message in VALID} == set(REPLIES)
    assert all(type(taken(frame)) is type(message) for frame, message in zip(FRAMES, VALID, strict=True))


CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=5)


@pytest.mark.slow
@settings(SETTINGS, max_examples=1_000)
@given(st.sampled_from(FRAMES), CHANGES, st.floats(0, 1), st.binary(max_size=8))
def test_changed_bytes(frame: bytes, changes: list[tuple[float, int]], kept: float, more: bytes) -> None:
    """Of a valid message, cut at any place, with anything behind."""
    data = bytearray(frame)
    for place, value in changes:
        data[int(place * len(data))] = value
    taken(bytes(data))
    taken(bytes(data[: int(kept * len(data))]) + more)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=5)
    | st.sampled_from(["", "\ud800", "0" * 5_000, KIND_KEY, ARRAYS_KEY, "arrays", 2**63, 10**400])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values within a document."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A document with another value at a path."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: replaced(value[key], tuple(rest), new)}
    return [replaced(v, tuple(rest), new) if i == key else v for i, v in enumerate(value)]


@pytest.mark.slow
@settings(SETTINGS, max_examples=1_500)
@given(
    st.sampled_from(FRAMES), st.floats(0, 1, exclude_max=True), JSON, st.sampled_from(["put", "add", "drop"])
)
def test_changed_values(frame: bytes, place: float, new: Any, how: str) -> None:
    """Any JSON, and NaN, at any place of a valid document; fields too many and too few."""
    document, payload = document_of(frame)
    paths = list(places(document))
    path = paths[int(place * len(paths))]
    if how == "add":
        document = {**document, str(new)[:20]: new}
    elif how == "drop" and len(path) == 1:
        del document[path[0]]
    else:
        document = replaced(document, path, new)
    taken(framed(document, payload))


@settings(SETTINGS, max_examples=800)
@given(
    st.sampled_from([REPLY.__name__ for REPLY in (*REPLIES, *REQUESTS)]),
    st.dictionaries(
        st.sampled_from(["kinds", "parameters", "handle", "result", "calls", "number", "figures"]), JSON
    ),
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(["output", "call0", "a", ""]) | st.text(max_size=3),
                "dtype": st.sampled_from([*DTYPES, "object", "complex128", ">f4", "V8", "S3"]),
                "shape": st.lists(
                    st.sampled_from([0, 1, 2, 3, -1, 2**31, 2**39, 2**63, True, 1.5]), max_size=10
                ),
            }
        ),
        max_size=4,
    ),
    st.binary(max_size=64),
)
def test_any_fields_and_arrays(kind: str, fields: dict[str, Any], arrays: list[Any], payload: bytes) -> None:
    """Of any kind, with duplicate names, absurd shapes and types that frames do not carry."""
    taken(framed({KIND_KEY: kind, **fields, ARRAYS_KEY: arrays}, payload))


@settings(SETTINGS, max_examples=400)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=64))
def test_any_header(document: int, arrays: int, rest: bytes) -> None:
    """Absurd lengths cost nothing."""
    taken(HEADER.pack(MAGIC, document, arrays) + rest)
    taken(HEADER.pack(MAGIC, document % LIMIT.document, arrays % LIMIT.arrays) + rest)


ROOM = 4_000_000  # bytes, the size of the largest document
LARGEST = {
    "deep lists": b"[" * ROOM,
    "deep objects": b'{"a":' * (ROOM // 5),
    "names": b'{"$kind": "Loaded", "kinds": {' + b",".join(b'"%d": 0' % n for n in range(300_000)) + b"}}",
    "wrong values": b'{"$kind": "Loaded", "kinds": {}, "problems": [' + b"0," * 1_900_000 + b"0]}",
    "fewer wrong values": b'{"$kind": "Loaded", "kinds": {}, "problems": [' + b"0," * 190_000 + b"0]}",
    "shapes": b'{"$kind": "Loaded", "$arrays": [' + b"[]," * 1_200_000 + b"[]]}",
    "a number": b'{"$kind": "Loaded", "kinds": ' + b"1" * 3_900_000 + b"}",
    "text": b'{"$kind": "Loaded", "kinds": "' + rb"\u00e9" * 600_000 + b'"}',
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", LARGEST)
def test_the_largest_document_is_refused_at_a_bounded_price(kind: str) -> None:
    """However deep or wide: some hundred bytes for each value that may be there, not for each that is."""
    text = LARGEST[kind]
    assert len(text) <= ROOM
    frame = HEADER.pack(MAGIC, len(text), 0) + text
    begun = time.process_time()
    with pytest.raises(ProtocolError):
        receive(io.BytesIO(frame), (Loaded,), FrameLimit(document=ROOM, arrays=0))
    assert time.process_time() - begun < 10  # seconds; usually 0.1, and minutes where a price is quadratic
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            receive(io.BytesIO(frame), (Loaded,), FrameLimit(document=ROOM, arrays=0))
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()


class Process:
    """A worker that has answered already."""

    attestation = Attestation("unofficial")
    output_cut = False

    def __init__(self, answer: bytes) -> None:
        self.reader = io.BytesIO(answer)
        self.writer = io.BytesIO()

    def kill(self) -> None:
        pass

    close = kill

    def ending(self) -> Ending:
        return Ending("it ended by itself with exit code 0")


@settings(SETTINGS, max_examples=500)
@given(st.sampled_from(REPLIES), st.sampled_from(FRAMES), CHANGES, st.booleans())
def test_a_link_raises_what_it_says(
    wanted: type[Any], frame: bytes, changes: list[tuple[float, int]], changed: bool
) -> None:
    """The wanted kind of reply, or one of three exceptions, each with whose fault it is."""
    data = bytearray(frame)
    for place, value in changes if changed else ():
        data[int(place * len(data))] = value
    link = Link(Process(bytes(data)))  # type: ignore[arg-type]
    request = Load(Program("homework.py"))
    try:
        answer = link.ask(request, wanted, seconds=5, limit=LIMIT)
    except (StudentRaised, WorkerFault, EngineError):
        return
    assert type(answer) is wanted
