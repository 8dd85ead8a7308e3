"""Messages are validated strictly: kinds, fields and types."""

import io
import json
from typing import Any

import numpy as np
import pytest

from grader.domain.analyzed_program import Place, Program, Recipe, Statement
from grader.domain.formatting import Said
from grader.domain.program_run import AffineFake, Prying
from grader.protocol.frames import HEADER, MAGIC, Frame, FrameLimit, ProtocolError, write_frame
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
from grader.protocol.requests import (
    Adopt,
    Answer,
    Build,
    Call,
    FakeAnswer,
    FakeForm,
    Invoke,
    Load,
    LoadCheckpoint,
    MeasureModel,
    Prove,
    Rows,
    RunFunction,
    SetWeights,
    Train,
    Weights,
)
from grader.protocol.trees import ModelMade, OtherValues
from grader.protocol.typed_messages import KIND_KEY, REQUESTS, receive, send

REPLIES: tuple[type[Any], ...] = (*Reply.__args__, *Notice.__args__)
LIMIT = FrameLimit(document=100_000, arrays=100_000)

STATEMENT = Statement("import torch", Place("cell 4", 3), ("torch",), "import")
MESSAGES = [
    Load(
        Program("a.py", (STATEMENT,), {"ViT": Place("a.py", 7)}, recipe=Recipe(batch_size="3")),
        ("timm",),
        seed=4,
    ),
    Build(
        "Transformer",
        (22, 2),
        {"dropout": 0.5},
        {"Attention": AffineFake((0.5,), (1.0,), 1)},
        inner=AffineFake(),
    ),
    Adopt(2),
    Invoke(
        "fit",
        args=({"list": [1, 0.5]}, {"array": "tree0", "torch": True}),
        kwargs={"mode": "a"},
        parameters=("model",),
        fakes={"evaluate": FakeForm(0, "evaluate", "module", {"w": (2, 3)}, True)},
        reads=("metrics.csv",),
        training=True,
        arrays={"tree0": np.ones((2, 3), dtype=np.float32)},
    ),
    FakeAnswer({"tuple": [None, {"dict": [["a", 1]]}]}, 2, True, {"tree0": np.zeros(2)}),
    FakeCalled(0, 1, True, False, {"list": [{"array": "tree0"}]}, {"tree0": np.zeros(2)}),
    Invoked(
        {"thing": 1, "kind": "module", "type": "Linear"},
        "loss 0.5",
        ({"same": True},),
        {"mode": {"same": True}},
        (None,),
        True,
        False,
        ("metrics.csv",),
        (DrawnFigure(-1, "Curves", (Axes("", "epoch", "loss", lines=(0,), line_names=("training",)),)),),
        {"file:metrics.csv": np.zeros(3, dtype=np.uint8), "drawn:line0": np.zeros((2, 4))},
    ),
    Call(3, True, False, 8, True, 2, {"0": np.ones((2, 3), dtype=np.float32)}),
    Loaded(
        {"ViT": "class"},
        (Problem("NameError", Said("x"), "a.py:3", "memory", gpu_share=0.5),),
        ("torchsummary",),
    ),
    Called("tensor", arrays={"output": np.zeros(2)}),
    Raised(Problem("ValueError", Said('no \N{SNOWMAN} "quoted"'), "cell 4, line 3"), "recipe", "loop_raised"),
    Done(),
    Weights(2),
    SetWeights(2, {"w": np.zeros((2, 0))}),
    RunFunction(
        "evaluate",
        ("model",),
        (4, 3),
        ("a", "b"),
        "train",
        0.5,
        {"n": 2},
        3,
        1,
        False,
        True,
        {"t": np.eye(2)},
    ),
    Train(
        ("a",),
        "cuda",
        3,
        2,
        4000,
        True,
        OtherValues({"dim": 8}, "fit", {"epochs": 2}),
        {"train_images": np.zeros((1, 2, 2), dtype=np.uint8)},
    ),
    MeasureModel(
        ("a",),
        "cuda",
        3,
        1000,
        ModelMade((1, "a"), {"dim": 0.5}),
        {"test_images": np.zeros((1, 2, 2), dtype=np.uint8)},
    ),
    Answer((4, 7), (1,), {"state:w": np.zeros((1, 2), dtype=np.float32)}),
    LoadCheckpoint("cpu", 5, {"file": np.zeros(3, dtype=np.uint8)}),
    Built(
        1,
        (Parameter("w", (2, 3), False, ("w", "v")),),
        (Module("", "ViT", "homework", 6, 0.1),),
        (FakeConstruction("Attention", (8, None, 0.5), {"heads": 4}),),
    ),
    Called(
        "tensor",
        (AffineFakeCall("Attention", 1, (2, 3, 4)),),
        ("w",),
        (1,),
        {"call0": np.zeros((2, 3, 4))},
    ),
    WeightValues({"w": np.zeros(2)}),
    Ran(
        "loss 0.5",
        "float",
        True,
        True,
        1,
        ("forward", "step"),
        (0,),
        True,
        False,
        (
            DrawnFigure(
                0,
                "title",
                (
                    Axes(
                        "t",
                        "x",
                        "y",
                        ("1",),
                        ("2",),
                        ("3",),
                        (0,),
                        (1,),
                        text_cells=((0, 1),),
                        bars=(0.5,),
                        bar_names=("c",),
                    ),
                ),
            ),
        ),
        {"returned": np.zeros(1)},
    ),
    ForwardPass(2, True, False, (1, 2)),
    Rows({"rows": np.zeros((2, 3), dtype=np.float32)}),
    TrainingPlan(3, 64, "AdamW", "StepLR", "cpu", ("batch_size",)),
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
    Prove(7),
    Watching((WatchedPart("torch.nn.Identity", ("torch.nn.Id*",)),)),
    Reached(0, -1, "cell 4", 3),
    Tried(0, 7),
    Imported(1, "homework.py", 2),
    Seen(Prying.FRAMES, "homework.py", 2),
]


def test_every_kind_of_message_has_an_example() -> None:
    """A kind that is added must be tried as well."""
    assert {type(message) for message in MESSAGES} == {*REQUESTS, *REPLIES, Rows, FakeAnswer}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_round_trip(message: Any) -> None:
    """A message comes back equal, arrays included."""
    stream = io.BytesIO()
    send(stream, message)
    stream.seek(0)
    back = receive(stream, (*REQUESTS, *REPLIES, Rows, FakeAnswer), LIMIT)
    assert type(back) is type(message)
    arrays = getattr(message, "arrays", {})
    for name, value in arrays.items():
        np.testing.assert_array_equal(back.arrays[name], value)
    plain = {name: value for name, value in vars(message).items() if name != "arrays"}
    assert {name: value for name, value in vars(back).items() if name != "arrays"} == plain


def received(document: dict[str, Any], *allowed: Any, arrays: dict[str, Any] | None = None) -> Any:
    """What is made of a document that a worker might send."""
    stream = io.BytesIO()
    write_frame(stream, Frame(document, arrays or {}))
    stream.seek(0)
    return receive(stream, allowed, LIMIT)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {KIND_KEY: "Done"},
        {KIND_KEY: "Load"},
        {KIND_KEY: ["Called"]},
        {KIND_KEY: "Called"},
        {KIND_KEY: "Called", "result": 5},
        {KIND_KEY: "Called", "result": "tensor", "calls": "none"},
        {KIND_KEY: "Called", "result": "tensor", "calls": [{"component": "x"}]},
        {
            KIND_KEY: "Called",
            "result": "tensor",
            "calls": [{"component": "x", "instance": "0", "shape": [1]}],
        },
    ],
)
def test_unexpected_or_malformed_replies_are_refused(document: dict[str, Any]) -> None:
    """An unknown kind, another kind than the request allows, missing fields and wrong types."""
    with pytest.raises(ProtocolError):
        received(document, Called)


@pytest.mark.parametrize(
    ("field", "value"),
    [("number", True), ("number", "1"), ("number", 1.5), ("learning_rate", "0.1"), ("learning_rate", None)],
)
def test_numbers_are_not_coerced(field: str, value: object) -> None:
    """A string is not a number, and a truth value is none either."""
    good = {KIND_KEY: "EpochDone", "number": 1, "learning_rate": 0.1}
    assert received(good, EpochDone).number == 1
    with pytest.raises(ProtocolError):
        received({**good, field: value}, EpochDone)


def test_arrays_come_only_beside_the_document() -> None:
    """A document's own `arrays` are not believed, and a kind without arrays carries none."""
    with pytest.raises(ProtocolError):
        received({KIND_KEY: "Done"}, Done, arrays={"x": np.zeros(2)})
    for smuggled in ({"output": [1, 2]}, {"output": "text"}, {}, None):
        with pytest.raises(ProtocolError):
            received({KIND_KEY: "Called", "result": "tensor", "arrays": smuggled}, Called)


def test_unknown_fields_are_refused() -> None:
    """A reply has the fields that it has."""
    with pytest.raises(ProtocolError):
        received({KIND_KEY: "Done", "points": 100}, Done)


def test_values_of_the_wrong_kind_within_a_run_are_refused() -> None:
    """Nested messages are validated as strictly."""
    document = json.loads('{"printed": "", "returned_kind": "x", "figures": [{"pixels": 0, "axes": [3]}]}')
    with pytest.raises(ProtocolError):
        received({KIND_KEY: "Ran", **document}, Ran)


@pytest.mark.parametrize("depth", [150, 250, 500, 900, 940, 960, 980, 990, 1000, 3000])
def test_depth_is_malformed_wherever_it_stands(depth: int) -> None:
    """However deep: whether it is the parser, the validator or a repr that has enough of it."""
    nest = "[" * depth + "]" * depth
    for text in (
        f'{{"{KIND_KEY}": "Loaded", "kinds": {nest}}}',
        f'{{"{KIND_KEY}": "Loaded", "kinds": {{}}, "problems": {nest}}}',
        f'{{"{KIND_KEY}": {nest}}}',
    ):
        stream = io.BytesIO(HEADER.pack(MAGIC, len(text), 0) + text.encode())
        with pytest.raises(ProtocolError):
            receive(stream, (Loaded,), LIMIT)


@pytest.mark.parametrize("text", [r'"\ud800"', r'"\u0000"'])
def test_text_that_is_no_text_is_refused_or_arrives(text: str) -> None:
    """A lone half of a pair cannot be written to any report; a zero byte is a character like any other."""
    document = f'{{"{KIND_KEY}": "Raised", "problem": {{"type": "E", "message": {{"text": {text}}}}}}}'
    stream = io.BytesIO(HEADER.pack(MAGIC, len(document), 0) + document.encode())
    if "ud800" in text:
        with pytest.raises(ProtocolError):
            receive(stream, (Raised,), LIMIT)
    else:
        assert receive(stream, (Raised,), LIMIT).problem.message.text == "\x00"
