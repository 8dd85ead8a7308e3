"""What the fakes in a component were constructed with, as a check reads it and as a worker may lie."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.judge import untrusted_replies
from grader.judge.student import Student
from grader.kit import AffineFake, Mismatch, same
from grader.protocol.frames import Frame
from grader.protocol.link import WorkerFault
from grader.protocol.replies import AffineFakeCall, Built, Called, FakeConstruction

SIZES = (22, 2, 5, 4, 31)  # of the Transformer: dim, depth, heads, dim_head, mlp_dim
REPLACED = {"Attention": AffineFake(), "FeedForward": AffineFake(), "PreNorm": AffineFake(wraps=True)}


@pytest.fixture
def built_by(
    tampered: Callable[..., Any],
    spawn: Callable[[], Any],
    analyzed: Callable[[str], Program],
    assignment: Assignment,
    solved: str,
) -> Iterator[Callable[..., Any]]:
    """Build a Transformer of a text's in a worker whose `made` passes through a function."""
    students: list[Student] = []

    def built(change: Callable[[list[Any]], Any] = lambda made: made, *, text: str = solved) -> Any:
        def changed(frame: Frame) -> Frame:
            if frame.document.get("$kind") != "Built":
                return frame
            return Frame({**frame.document, "made": change(frame.document["made"])}, frame.arrays)

        students.append(Student(lambda: tampered(spawn(), changed), analyzed(text), assignment, seed=1))
        return students[-1].build("Transformer", *SIZES, dropout=0.25, replace=REPLACED)

    yield built
    for student in students:
        student.close()


def test_arguments_have_the_names_of_the_stub(built_by: Callable[..., Any], solved: str) -> None:
    """Whether they were given by place or by name; what was not given is not there."""
    transformer = built_by()
    whole = {"dim": 22, "heads": 5, "dim_head": 4, "dropout": 0.25}
    assert transformer.constructions("Attention") == [whole, whole]
    assert [set(made) for made in transformer.constructions("PreNorm")] == [{"dim", "fn"}] * 4
    assert {made["fn"] for made in transformer.constructions("PreNorm")} == {None}
    assert transformer.constructions("ViT") == []
    call = "Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)"
    assert solved.count(call) == 1
    less = built_by(text=solved.replace(call, "Attention(dim, heads)"))
    assert less.constructions("Attention") == [{"dim": 22, "heads": 5}] * 2


LIES: dict[str, Callable[[list[Any]], Any]] = {
    "a number of thousands of digits": lambda made: [{**made[0], "args": [10**4000]}],
    "a whole number that no float holds": lambda made: [{**made[0], "args": [-(2**53)]}],
    "infinity": lambda made: [{**made[0], "kwargs": {"dropout": float("inf")}}],
    "no number": lambda made: [{**made[0], "kwargs": {"dropout": float("nan")}}],
    "a long text": lambda made: [{**made[0], "args": ["x" * 100_000]}],
    "a long name": lambda made: [{**made[0], "kwargs": {"x" * 100_000: 1}}],
    "a long component": lambda made: [{**made[0], "component": "x" * 100_000}],
    "many arguments": lambda made: [{**made[0], "args": [0] * 10_000}],
    "many names": lambda made: [{**made[0], "kwargs": {str(n): n for n in range(10_000)}}],
    "many constructions": lambda made: made * 10_000,
    "a list": lambda made: [{**made[0], "args": [[1, 2]]}],
    "a table": lambda made: [{**made[0], "kwargs": {"dim": {}}}],
    "text for a list": lambda _: "made",
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_constructions_is_the_workers_fault(built_by: Callable[..., Any], lie: str) -> None:
    """It never reaches a check, which would stumble over it and look wrong itself."""
    with pytest.raises(WorkerFault):
        built_by(LIES[lie])


def test_what_our_own_worker_says_at_most_is_believed() -> None:
    """The limits leave room for what is honest, and for a lie that is small."""
    texts = ("x" * 200, 2**53 - 1, -1.5, True, None)
    made = FakeConstruction("Attention", texts * 6, {f"{n}" * 100: n for n in range(32)})
    built = Built(0, (), (), (made,) * 256)
    assert untrusted_replies.constructions(built) == built.made


def test_several_calls_in_one_question_are_told_apart(built_by: Callable[..., Any]) -> None:
    """While a loop is at an output, what the fakes got is what they got in its call."""
    transformer = built_by()
    x = transformer._student.tensor(2, 3, 22)
    alone = transformer(x)
    made, before = len(transformer.calls), transformer._student.questions
    outputs = []
    for output in transformer.repeated(x, times=3, shape=(2, 3, 22)):
        outputs.append(output)
        assert len(transformer.calls) == made > 0
        assert same(transformer.inputs_of("PreNorm")[0], x)
    assert len(outputs) == 3
    assert all(same(output, alone) for output in outputs)
    assert transformer._student.questions == before + 1


def test_a_call_by_name_tells_what_the_fakes_got_as_well(built_by: Callable[..., Any]) -> None:
    """`never calls` would be false otherwise; what is read between leaves what is known."""
    transformer = built_by()
    x = transformer._student.tensor(2, 3, 22)
    for member in ("", "forward"):
        transformer.calls = ()
        transformer.call(member, x)
        transformer.get("training")
        assert same(transformer.inputs_of("PreNorm")[0], x)
    seen = len(transformer.calls)
    transformer(x)
    assert len(transformer.calls) == seen > 0
    transformer.call("eval")
    with pytest.raises(Mismatch, match="never calls"):
        transformer.inputs_of("PreNorm")


@pytest.mark.parametrize("numbers", [(), (4,), (4, 2), (-1, 4), (4, 8), (1, 2, 4)])
def test_a_lie_about_which_call_a_fake_was_called_in_is_the_workers_fault(numbers: tuple[int, ...]) -> None:
    called = Called("tensor", (AffineFakeCall("Attention", 0, (2,)),) * 4, calls_by=numbers)
    with pytest.raises(WorkerFault):
        untrusted_replies.calls_by(called, 2)
