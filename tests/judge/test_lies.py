"""Whatever well-formed replies a worker makes up, the judge says Mismatch or the worker's fault."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.domain.analyzed_program import Program, Recipe
from grader.domain.assignment import Assignment
from grader.domain.program_run import AffineFake
from grader.grading.judging import png
from grader.judge import untrusted_replies
from grader.judge.student import Student
from grader.kit import Mismatch
from grader.kit.doubles import Fake
from grader.kit.rigged_data import RiggedData
from grader.protocol.frames import DTYPES, FrameLimit
from grader.protocol.link import WorkerFault
from grader.protocol.replies import (
    AffineFakeCall,
    Axes,
    Built,
    Called,
    Done,
    DrawnFigure,
    FakeCalled,
    FakeConstruction,
    ForwardPass,
    Invoked,
    Loaded,
    Module,
    Parameter,
    Ran,
    WeightValues,
)
from grader.protocol.typed_messages import receive, send
from grader.protocol.worker_reports import WatchRecord

SETTINGS = settings(deadline=None, derandomize=True, database=None)
NAMES = st.sampled_from(["w", "b", "output", "input", "", "Attention", "x" * 300]) | st.text(max_size=4)
INTEGERS = st.sampled_from([0, 1, 2, 3, 12, -1, 2**31, 2**40, 2**53, 2**63 - 1, -(2**63), 10**60])
SMALL = st.sampled_from([0, 1, 2, 3, 12])
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e308, -1e308, 5e-324])
SHAPES = st.lists(SMALL, max_size=4).map(tuple)


def some(strategy: Any, most: int = 3) -> Any:
    """A few of something."""
    return st.lists(strategy, max_size=most).map(tuple)


@st.composite
def arrays(draw: Any, names: Any) -> dict[str, Any]:
    """Arrays of any type and shape, with whatever floating point can hold."""
    found = {}
    for name in draw(st.lists(names, max_size=5, unique=True)):
        shape = draw(SHAPES)
        values = np.full(shape, draw(st.sampled_from([0.0, 1.0, -3.5, 1e38, np.nan, np.inf])))
        with np.errstate(all="ignore"):
            found[name] = values.astype(draw(st.sampled_from(DTYPES)))
    return found


PARAMETERS = st.builds(Parameter, NAMES, some(INTEGERS, 9) | SHAPES, st.booleans(), some(NAMES))
MODULES = st.builds(Module, NAMES, NAMES, NAMES, INTEGERS | SMALL, st.none() | FLOATS)
PLAIN = st.none() | st.booleans() | INTEGERS | FLOATS | NAMES
LEAVES = (
    st.none()
    | st.booleans()
    | INTEGERS
    | FLOATS
    | NAMES
    | st.sampled_from(
        [
            {"same": True},
            {"array": "tree0"},
            {"array": "tree0", "torch": True},
            {"array": "tree1", "dtype": "complex64"},
            {"array": "tree1", "dtype": "bfloat16", "torch": True},
            {"float": "nan"},
            {"int": "9" * 300},
            {"bytes": "tree0"},
            {"texts": ["a"], "shape": [1]},
            {"texts": ["a"], "shape": [2**40, 0]},
            {"beyond": "bytes"},
            {"beyond": "lies"},
            {"thing": 3, "kind": "module", "type": "Linear"},
            {"thing": 10**40, "kind": "god", "type": "x" * 300},
            {"part": "Attention"},
            {"fake": {}},
        ]
    )
)


def _nested(nodes: Any) -> Any:
    return st.builds(
        lambda kind, values: {kind: values},
        st.sampled_from(["list", "tuple", "set", "dict", "array", "thing"]),
        st.lists(nodes | st.lists(nodes, min_size=2, max_size=2), max_size=3),
    )


# three levels, written out: st.recursive draws again when it has drawn too many leaves, and then the same
# choices do not always give the same tree
_FLAT = LEAVES | _nested(LEAVES)
TREES = _FLAT | _nested(_FLAT)
MADE = st.builds(FakeConstruction, NAMES, some(PLAIN), st.dictionaries(NAMES, PLAIN, max_size=3))
FIGURES = some(
    st.builds(
        DrawnFigure,
        INTEGERS,
        NAMES,
        some(
            st.builds(
                Axes,
                NAMES,
                images=some(INTEGERS),
                heat_maps=some(SMALL),
                bars=some(FLOATS),
                bar_names=some(NAMES),
                place=st.tuples(FLOATS, FLOATS, FLOATS, FLOATS),
            )
        ),
    )
)
REPLIES: dict[type[Any], Any] = {
    FakeCalled: st.builds(
        FakeCalled,
        number=INTEGERS | SMALL,
        instance=INTEGERS | SMALL,
        training=st.booleans(),
        gradients=st.booleans(),
        tree=TREES,
        arrays=arrays(st.sampled_from(["tree0", "tree1"])),
        learns=some(NAMES),
        rates=st.dictionaries(NAMES, FLOATS, max_size=2),
    ),
    Invoked: st.builds(
        Invoked,
        value=TREES,
        printed=NAMES,
        args=some(TREES),
        kwargs=st.dictionaries(st.sampled_from(["count", "x"]), TREES, max_size=2),
        gradients=some(TREES),
        attached=st.booleans(),
        gradients_after=st.booleans(),
        files=some(st.sampled_from(["m.csv", "../x", ""])),
        figures=FIGURES,
        arrays=arrays(st.sampled_from(["tree0", "tree1", "file:m.csv", "file:../x", "drawn:0"])),
    ),
    ForwardPass: st.builds(
        ForwardPass, INTEGERS | SMALL, st.booleans(), st.booleans(), some(INTEGERS | SMALL)
    ),
    Built: st.builds(Built, INTEGERS, some(PARAMETERS), some(MODULES), some(MADE)),
    Called: st.builds(
        Called,
        result=st.sampled_from(["tensor", "tensor", "tensor", "tuple", ""]),
        calls=some(st.builds(AffineFakeCall, NAMES, INTEGERS, SHAPES | some(INTEGERS))),
        no_gradient=some(NAMES),
        calls_by=some(INTEGERS | SMALL),
        arrays=arrays(
            st.sampled_from(["output", "call0", "call1", "gradient:input", "gradient:w", "gradient:b"])
        ),
    ),
    WeightValues: st.builds(WeightValues, arrays(NAMES)),
    Done: st.builds(Done),
    Ran: st.builds(
        Ran,
        printed=st.text(max_size=20),
        returned_kind=NAMES,
        history_keeps_graph=st.booleans(),
        history_has_tensors=st.booleans(),
        steps=INTEGERS,
        events=some(NAMES),
        learned=some(INTEGERS),
        training_after=st.booleans(),
        gradients_after=st.booleans(),
        figures=FIGURES,
        arrays=arrays(
            st.sampled_from(
                ["returned", "history", "logit_gradients", "step_gradients", "image0", "figure0", "palette0"]
            )
        ),
    ),
}
EXPECTED = (Mismatch, WorkerFault)
# what an honest worker might say to the deeds below
HONEST: dict[type[Any], Any] = {
    ForwardPass: ForwardPass(2, False, False, (0, 2)),
    FakeCalled: FakeCalled(
        0,
        1,
        False,
        False,
        {"tuple": [{"tuple": [{"array": "tree0", "torch": True}]}, {"dict": [["mask", None]]}]},
        {"tree0": np.ones((2, 3))},
    ),
    Invoked: Invoked(
        {"tuple": [{"array": "tree0", "torch": True}, {"thing": 1, "kind": "module", "type": "Linear"}]},
        "loss",
        ({"same": True}, {"same": True}),
        {"count": {"same": True}},
        gradients=({"array": "tree0", "torch": True}, None),
        attached=True,
        gradients_after=False,
        files=("m.csv",),
        arrays={"tree0": np.ones((2, 3), np.float32), "file:m.csv": np.zeros(3, np.uint8)},
    ),
    Built: Built(0, (Parameter("w", (2, 3), True),), (Module("", "Attention", "homework", 6),)),
    Called: Called(
        "tensor",
        (AffineFakeCall("Attention", 0, (2, 3)),),
        calls_by=(1,),
        arrays={
            "output": np.ones((2, 3), np.float32),
            "call0": np.ones((2, 3), np.float32),
            "gradient:input": np.ones((2, 3), np.float32),
            "gradient:w": np.ones((2, 3), np.float32),
        },
    ),
    WeightValues: WeightValues({"w": np.ones((2, 3), np.float32)}),
    Done: Done(),
    Ran: Ran(
        "loss",
        "float",
        figures=(DrawnFigure(0, "a", (Axes("b", images=(0,), bars=(0.5,), bar_names=("c",)),)),),
        steps=1,
        arrays={
            "returned": np.ones(1),
            "history": np.ones(2),
            "logit_gradients": np.ones((3, 3), np.float32),
            "step_gradients": np.ones((1, 2, 3), np.float32),
            "image0": np.ones((4, 4), np.float32),
            "figure0": np.ones((9, 9), np.uint8),
            "palette0": np.ones((2, 3), np.uint8),
        },
    ),
}


@st.composite
def lies(draw: Any, kind: type[Any]) -> Any:
    """An honest reply of which at most two parts are made up."""
    honest, wild = HONEST[kind], draw(REPLIES[kind])
    names = [part.name for part in fields(kind)]
    chosen = draw(st.lists(st.sampled_from(names), max_size=2)) if names else []
    changes = {name: getattr(wild, name) for name in chosen}
    if "arrays" in changes and draw(st.booleans()):
        changes["arrays"] = {**honest.arrays, **wild.arrays}
    return replace(honest, **changes)


def delivered(message: Any) -> Any:
    """A reply as it arrives; one that cannot travel is a fault already."""
    stream = io.BytesIO()
    send(stream, message)
    stream.seek(0)
    return receive(stream, (type(message),), FrameLimit())


class Liar:
    """A link to a worker that answers with whatever a test draws."""

    broken, granted = False, 0.0

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self.watch = WatchRecord()

    def ask(self, request: Any, reply: type[Any], answers: Any = None, **_: Any) -> Any:
        for asked, answer in (answers or {}).items():
            for _ in range(self._data.draw(st.integers(0, 2))):
                delivered(answer(delivered(self._data.draw(lies(asked)))))
        return delivered(self._data.draw(lies(reply)))


RIGGED = RiggedData(
    arrays={
        "images": np.zeros((3, 1, 4, 4), np.float32),
        "labels": np.arange(3),
        "features": np.zeros((3, 2), np.float32),
        "weights": np.zeros((2, 3), np.float32),
    },
    batch_sizes=(2, 1),
    class_names=("a", "b", "c"),
)


def deeds(student: Student) -> dict[str, Callable[[], object]]:
    """All that a check does with a student's worker."""
    x = student.tensor(2, 3)

    def measured() -> object:
        component = student.build("Attention", 3, inner=AffineFake())
        return component.parameter_count, component.constructions("Attention"), component.gradients(x, x)

    def invoked() -> object:
        fake = Fake.script([1, 2, 3])
        outcome = student.call("evaluate", x, fake, count=2, reads=["m.csv"], gradients=True)
        returned = outcome.returned
        for taken in (returned.tensor, returned.number, returned.text, returned.truth, returned.nothing):
            with contextlib.suppress(Mismatch):
                taken()
        for value in (*outcome.args, *outcome.kwargs.values(), *returned.items(2)):
            assert len(value.in_words) < 300
        return (
            outcome.gradients,
            outcome.file("m.csv"),
            outcome.calls_of("model"),
            returned.items(2)[1].thing(),
        )

    return {
        "invoke": invoked,
        "call": lambda: student.build("Attention", 3)(x),
        "call in shape": lambda: student.build("Attention", 3)(x, shape=(2, 3)),
        "measure": measured,
        "weights": lambda: student.build("Attention", 3).weights(),
        "randomize": lambda: student.build("Attention", 3).randomize(),
        "model": student.configured_model,
        "run": lambda: student.run("evaluate", RIGGED),
    }


@pytest.mark.slow
@settings(SETTINGS, max_examples=600)
@given(st.data())
def test_no_reply_is_more_than_a_mismatch(assignment: Assignment, data: st.DataObject) -> None:
    """Numbers beyond any size, NaN, missing arrays, wrong types and shapes, names twice."""
    program = Program("homework.py", recipe=Recipe(model="ViT()"))
    student = Student(lambda: pytest.fail("no worker is wanted"), program, assignment, seed=1)
    student.worker._link = Liar(data)  # type: ignore[assignment]
    student.worker.loaded = Loaded({"Attention": "class", "ViT": "class", "evaluate": "function"})
    deed = data.draw(st.sampled_from(sorted(deeds(student))))
    try:
        deeds(student)[deed]()
    except EXPECTED:
        return
    for _, picture in student.figures:
        assert picture.palette[picture.indexes].nbytes < 10**7


def _shown(picture: untrusted_replies.Picture | None) -> bytes:
    return b"" if picture is None else png(picture.indexes, picture.palette)


@settings(SETTINGS, max_examples=100)
@given(lies(Built), lies(Called), lies(WeightValues), lies(Ran))
def test_what_is_believed_is_what_it_says(
    built: Built, called: Called, weights: WeightValues, ran: Ran
) -> None:
    """Each judgment alone, with messages that a link never saw."""
    judgments: list[Callable[[], object]] = [
        lambda: untrusted_replies.parameters(built),
        lambda: untrusted_replies.constructions(built),
        lambda: untrusted_replies.affine_fake_calls(called, frozenset({"Attention", ""})),
        lambda: untrusted_replies.gradients(called, built.parameters, (2, 3)),
        lambda: untrusted_replies.weights(weights.arrays, built.parameters),
        lambda: untrusted_replies.run_arrays(ran, RIGGED),
        lambda: _shown(untrusted_replies.picture(ran.arrays, 0)),
    ]
    for judgment in judgments:
        try:
            judgment()
        except EXPECTED:
            continue
