"""A check calls whatever students write, with whatever it needs, and learns what became of it."""

import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from grader.analysis import program
from grader.domain.assignment import Assignment, Component
from grader.domain.errors import CourseError
from grader.judge.remote_objects import Thing
from grader.judge.student import Student
from grader.kit import Fake, FakeObject, Library, Mismatch, Part, batches
from grader.kit.rigged_data import numbered_images
from grader.protocol.link import WorkerFault, WorkerProcess

STUBS = {
    "Scale": ("class", "factor, bias=None"),
    "Counter": ("class", "patience=3"),
    "make_model": ("function", "classes, width=4"),
    "mixed": ("function", "images, labels, share"),
    "anything": ("function", "value"),
    "report": ("function", "rows, path"),
    "train_epoch": ("function", "model, loader, epoch=0"),
    "evaluate": ("function", "model, loader"),
    "fit": ("function", "model, loader, epochs"),
    "extend": ("function", "model, tokens, count"),
    "loss": ("function", "scores, labels"),
}

SOURCE = """
import csv
import copy
import numpy as np
import torch
from torch import nn


class Scale:
    def __init__(self, factor, bias=None):
        self.factor, self.bias = np.array(factor), bias
        self.cache = {}

    def forward(self, x):
        self.cache["x"] = x
        return x * self.factor + (0 if self.bias is None else self.bias)


class Counter:
    def __init__(self, patience=3):
        self.patience, self.bad, self.best = patience, 0, None

    def step(self, value):
        if self.best is None or value > self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def make_model(classes, width=4):
    return nn.Sequential(nn.Flatten(), nn.Linear(4, width), nn.BatchNorm1d(width), nn.Linear(width, classes))


def mixed(images, labels, share):
    order = torch.arange(len(images)).flip(0)
    return share * images + (1 - share) * images[order], {"first": labels, "second": labels[order]}


def anything(value):
    return value


def report(rows, path):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print("wrote", len(rows), "rows")


def train_epoch(model, loader, epoch=0):
    for inputs, targets in loader:
        model(inputs)
    return 0.5


def evaluate(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for inputs, targets in loader:
            right += (model(inputs).argmax(dim=1) == targets).sum().item()
            seen += len(targets)
    return right / seen


def fit(model, loader, epochs):
    best, weights = -1.0, None
    for epoch in range(epochs):
        train_epoch(model, loader, epoch=epoch)
        accuracy = evaluate(model, loader)
        if accuracy > best:
            best, weights = accuracy, copy.deepcopy(model.state_dict())
    model.load_state_dict(weights)
    return {"best": best}


def extend(model, tokens, count):
    for _ in range(count):
        scores = model(tokens)[:, -1]
        tokens = torch.cat([tokens, scores.argmax(dim=-1, keepdim=True)], dim=1)
    return tokens


def loss(scores, labels):
    return nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)
"""


@pytest.fixture
def student(
    assignment: Assignment, spawn: Callable[[], WorkerProcess], request: pytest.FixtureRequest
) -> Callable[..., Student]:
    """A submission of an assignment with the stubs above."""

    def of(source: str = SOURCE) -> Student:
        components = tuple(Component(name, kind, signature) for name, (kind, signature) in STUBS.items())
        given = replace(assignment, components=components, forbidden=(), measures=())
        rules = replace(assignment.program_rules, components=components, forbidden=(), further={})
        made = Student(spawn, program("homework.py", textwrap.dedent(source).encode(), rules), given, seed=3)
        request.addfinalizer(made.close)
        return made

    return of


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2**80,
        0.1,
        float("inf"),
        "a text, é",
        b"bytes",
        [1, [2.5, "x"], ()],
        (1, (2, 3)),
        {"a": [1], 2: {"b": None}},
        frozenset({1, 2}),
    ],
    ids=repr,
)
def test_plain_values_of_any_nesting_come_back_as_they_are(student: Any, value: Any) -> None:
    """What goes in as a tree comes out as the same tree, with the types of its containers."""
    back = student().call("anything", value).returned.plain
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "bool",
        "complex64",
    ],
)
def test_tensors_of_every_usual_type_come_back_with_their_type(student: Any, dtype: str) -> None:
    """The type is part of the value."""
    value = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype))
    back = student().call("anything", {"x": value}).returned.plain["x"]
    assert back.dtype == value.dtype
    assert torch.equal(back, value)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint16", "int64", "bool", "complex128"]
)
def test_arrays_of_numpy_stay_arrays_of_numpy(student: Any, dtype: str) -> None:
    """A homework in numpy is given arrays and returns arrays."""
    value = np.array([[0, 1], [1, 0]], dtype=dtype)
    back = student().call("anything", value).returned.plain
    assert isinstance(back, np.ndarray)
    assert back.dtype == value.dtype
    assert np.array_equal(back, value)


def test_a_generator_is_a_list_of_what_it_yields(student: Any) -> None:
    """Unusual, and as good as a list."""
    text = SOURCE.replace("    return value\n", "    return (each * 2 for each in value)\n", 1)
    assert student(text).call("anything", [1, 2]).returned.items(2)[1].number() == 4


def test_a_class_that_is_no_module_is_called_and_asked(student: Any) -> None:
    """Its object stays in the worker; its methods and attributes are used from here."""
    counter = student().make("Counter", patience=2)
    assert counter.label == "Counter(patience=2)"
    assert [counter.call("step", value).returned.truth() for value in (0.4, 0.4, 0.5, 0.2, 0.1)] == [
        False,
        False,
        False,
        False,
        True,
    ]
    assert counter.get("best").number() == 0.5
    counter.set("best", 0.05)
    assert not counter.call("step", 0.2).returned.truth()


def test_an_object_with_arrays_is_read_and_written(student: Any) -> None:
    """What a layer in numpy holds."""
    layer = student().make("Scale", np.array([2.0, 3.0]))
    x = np.array([[1.0, 1.0], [2.0, 2.0]])
    assert np.array_equal(layer.call("forward", x).returned.array(2, 2), x * [2.0, 3.0])
    assert np.array_equal(layer.get("cache").at("x").array(2, 2), x)
    layer.set("bias", np.array([10.0, 0.0]))
    assert np.array_equal(layer.call("forward", x).returned.array(2, 2), x * [2.0, 3.0] + [10.0, 0.0])


def test_a_missing_method_is_told_as_the_students(student: Any) -> None:
    """By the object's label and what Python says."""
    with pytest.raises(Mismatch, match=r"Counter\(\).reset\(\)` raised AttributeError"):
        student().make("Counter").call("reset")


def test_a_factory_makes_a_component(student: Any) -> None:
    """A function that makes a module is built like a class; its buffers are set and read."""
    model = student().build("make_model", 3)
    assert model(torch.randn(4, 1, 2, 2), shape=(4, 3)).shape == (4, 3)
    statistics = torch.tensor([1.0, 2.0, 3.0, 4.0])
    model.set_weights({"2.running_mean": statistics})
    assert torch.equal(model.weights()["2.running_mean"], statistics)


def test_buffers_are_read_and_set_like_parameters(student: Any) -> None:
    """Running statistics move in training mode alone, and the output follows those that are set."""
    model = student().build("make_model", 3)
    x = torch.randn(8, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    statistics = {"2.running_mean": torch.ones(4), "2.running_var": torch.full((4,), 4.0)}
    model.set_weights({**statistics, "2.num_batches_tracked": torch.tensor(7)})
    before = model(x)
    held = model.weights()
    assert all(torch.equal(held[name], value) for name, value in statistics.items())
    model(x, train=True)
    after = model.weights()
    assert int(after["2.num_batches_tracked"]) == 8
    assert not torch.equal(after["2.running_mean"], held["2.running_mean"])
    assert not torch.allclose(model(x), before)
    model.set_weights(statistics)
    assert torch.allclose(model(x), before)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("2.mean", torch.ones(4), r"has no parameter or buffer of that name.*they are: 1\.weight, 1\.bias"),
        ("2.running_mean", torch.ones(3), r"a tensor of shape \(3,\); its own is \(4,\)"),
        ("1.weight", torch.ones(1, 4), r"a tensor of shape \(1, 4\); its own is \(4, 4\)"),
    ],
)
def test_weights_that_are_not_there_are_the_checks_fault(
    student: Any, name: str, value: torch.Tensor, words: str
) -> None:
    """Not the student's, and nothing is spread over a tensor of another shape."""
    with pytest.raises(CourseError, match=words):
        student().build("make_model", 3).set_weights({name: value})


def test_what_a_function_returns_can_be_a_component(student: Any) -> None:
    """A module among what is returned is asked for its parameters."""
    part = student()
    made = part.call("make_model", 3).returned.thing("module")
    assert isinstance(made, Thing)
    made.call("", torch.randn(4, 1, 2, 2))
    assert [p.name for p in part.component(made).parameters][:1] == ["1.weight"]


def test_what_a_function_makes_of_its_arguments_is_known(student: Any) -> None:
    """One that changes them in place is found; what it did not change is the check's own."""
    part = student()
    images, labels = part.tensor(4, 1, 2, 2), torch.tensor([0, 1, 2, 3])
    outcome = part.call("mixed", images, labels, 0.25)
    first, second = outcome.returned.items(2)
    assert torch.allclose(first.tensor(4, 1, 2, 2), 0.25 * images + 0.75 * images.flip(0))
    assert second.at("second").tensor(4, whole=True).tolist() == [3, 2, 1, 0]
    assert outcome.args[0].plain is images
    changing = SOURCE.replace("    order = torch", "    images += 1\n    order = torch")
    outcome = student(changing).call("mixed", images, labels, 0.25)
    assert torch.equal(outcome.args[0].tensor(), images + 1)
    assert outcome.args[1].plain is labels


def test_a_list_that_is_appended_to_comes_back(student: Any) -> None:
    """As a history does."""
    text = SOURCE.replace("    return value\n", "    value.append(len(value))\n", 1)
    assert student(text).call("anything", [7]).args[0].plain == [7, 1]


def test_parameters_may_be_reordered_renamed_and_one_may_be_added(student: Any) -> None:
    """The stub's names decide, else its places; a `device` is given."""
    images, labels = torch.ones(2, 1, 1, 1), torch.tensor([0, 1])
    heads = ("share, labels, images", "batch, labels, share", "images, labels, share, device")
    for head in (*heads, "batch, labels, share, device", "device, batch, labels, share"):
        text = SOURCE.replace("def mixed(images, labels, share):", f"def mixed({head}):\n    images = images")
        text = text.replace("    images = images\n", "    images = batch\n" if "batch" in head else "\n")
        first, _ = student(text).call("mixed", images, labels, share=0.5).returned.items(2)
        assert torch.equal(first.tensor(), images), head


@pytest.mark.parametrize("anything", ["*args", "*args, **kwargs"])
def test_a_decorator_may_hide_the_parameters(student: Any, anything: str) -> None:
    """One without functools.wraps takes anything, perhaps by place alone."""
    inner = f"def hidden(function):\n    return lambda {anything}: function({anything})\n\n\n@hidden\n"
    text = SOURCE.replace("def mixed(", f"{inner}def mixed(")
    images, labels = torch.ones(2, 1, 1, 1), torch.tensor([0, 1])
    first, _ = student(text).call("mixed", images, labels, share=0.5).returned.items(2)
    assert torch.equal(first.tensor(), images)


def test_printed_text_and_written_files_come_back(student: Any) -> None:
    """Only those that were asked for, and only regular ones."""
    rows = [{"epoch": 1, "accuracy": 0.5}, {"epoch": 2, "accuracy": 0.75}]
    outcome = student().call("report", rows, "m.csv", reads=["m.csv", "other.csv"])
    assert outcome.file("m.csv").split() == [b"epoch,accuracy", b"1,0.5", b"2,0.75"]
    assert outcome.printed == "wrote 2 rows\n"
    with pytest.raises(Mismatch, match=r"there is no file `other\.csv`"):
        outcome.file("other.csv")


@pytest.mark.parametrize("how", ["os.symlink('/etc/passwd', path)", "os.mkfifo(path)", "os.mkdir(path)"])
def test_what_is_no_regular_file_is_no_file(student: Any, how: str) -> None:
    """Neither a link nor a pipe is followed or waited for."""
    text = SOURCE.replace(
        '    with open(path, "w", newline="") as file:', f"    import os; {how}; return\n    if 1:"
    )
    assert student(text).call("report", [{}], "m.csv", reads=["m.csv"]).files == {}


def test_files_are_given(student: Any) -> None:
    """What a function reads is there."""
    text = SOURCE.replace("    return value\n", "    return open(value).read()\n", 1)
    assert student(text).call("anything", "in.txt", files={"in.txt": b"given"}).returned.text() == "given"


def test_a_scripted_model_is_evaluated(student: Any) -> None:
    """The rows of a fake decide how many are right; the calls are known, with their mode."""
    part = student()
    images, labels = numbered_images(6, 1), np.array([0, 1, 2, 0, 1, 2])
    scores = torch.nn.functional.one_hot(torch.tensor([0, 1, 2, 1, 2, 0]), 3).float()
    loader = batches(torch.from_numpy(images), torch.from_numpy(labels), [4, 2])
    outcome = part.call("evaluate", Fake.rows(scores), loader)
    assert outcome.returned.number() == 0.5
    assert [(call.number, call.training, call.gradients) for call in outcome.calls_of("model")] == [
        (1, False, False),
        (2, False, False),
    ]
    assert outcome.calls[1].args[0].shape == (2, 1, 28, 28)


@pytest.mark.parametrize(
    ("accuracies", "best"), [((0.4, 0.6, 0.5), 2), ((0.6, 0.6, 0.1), 1), ((0.1, 0.2, 0.3), 3)]
)
def test_the_epoch_whose_weights_are_kept_is_seen(student: Any, accuracies: Any, best: int) -> None:
    """Scripted values stand in for the epochs; each marks the model with its number."""
    part = student()
    model = part.keep(Fake.script([0.0], parameters={"head.weight": (2, 3)}))
    fakes = {
        "train_epoch": Fake.script([0.5], marks=True),
        "evaluate": Fake.script(accuracies),
    }
    outcome = part.call("fit", model, batches(torch.zeros(2, 1)), 3, replace=fakes)
    assert outcome.returned.at("best").number() == max(accuracies)
    assert [call.kwargs.get("epoch") for call in outcome.calls_of("train_epoch")] == [0, 1, 2]
    assert part.component(model).weights()["head.weight"].unique().tolist() == [best]


def test_a_table_answers_for_tokens(student: Any) -> None:
    """As the scores of a language model of one token: generation is judged alone."""
    table = torch.nn.functional.one_hot(torch.tensor([1, 2, 3, 0]), 4).float()
    tokens = torch.tensor([[0], [2]])
    outcome = student().call("extend", Fake.table(table), tokens, 3)
    assert outcome.returned.tensor(2, 4, whole=True).tolist() == [[0, 1, 2, 3], [2, 3, 0, 1]]
    assert len(outcome.calls) == 3


def test_a_call_that_a_table_does_not_know_is_told(student: Any) -> None:
    """Whatever the student's code makes of it."""
    text = SOURCE.replace(
        "    for _ in range(count):",
        "    try:\n        model(tokens + 9)\n    except Exception: pass\n    for _ in range(count):",
    )
    with pytest.raises(Mismatch, match="called with numbers outside the range 0 to 3"):
        student(text).call("extend", Fake.table(torch.eye(4)), torch.tensor([[0]]), 1)


def test_a_fake_returns_tuples_and_dictionaries(student: Any) -> None:
    """Whatever the check says, also by what it is called with."""
    text = SOURCE.replace("    return value\n", "    return [value(1), value(2)]\n", 1)
    fake = Fake.table({1: (torch.ones(2), {"a": 1}), 2: "two"}, kind="function")
    first, second = student(text).call("anything", fake).returned.items(2)
    assert first.items(2)[1].at("a").number() == 1
    assert second.text() == "two"


def test_an_offset_can_be_learned(student: Any) -> None:
    """The gradient of what a training computes reaches the fake's own parameter."""
    text = SOURCE.replace(
        "        model(inputs)\n    return 0.5",
        "        nn.functional.cross_entropy(model(inputs), targets).backward()\n"
        "    with torch.no_grad():\n        model.offset -= model.offset.grad",
    )
    part = student(text)
    model = part.keep(Fake.rows(torch.zeros(2, 2), parameters={"offset": (2,)}))
    part.call("train_epoch", model, batches(torch.from_numpy(numbered_images(2, 1)), torch.tensor([1, 1])))
    assert torch.allclose(part.component(model).weights()["offset"], torch.tensor([-0.5, 0.5]))


def test_a_callback_takes_no_place_of_a_graded_part(student: Any) -> None:
    """Else its answer is the solution."""
    with pytest.raises(CourseError, match="callback in the place of evaluate"):
        student().call("fit", None, None, 1, replace={"evaluate": Fake.callback(lambda *given: 1.0)})
    text = SOURCE.replace("    return value\n", "    return value(3)\n", 1)
    assert student(text).call("anything", Fake.callback(lambda x: x * 2)).returned.number() == 6


def test_another_part_is_handed_over(student: Any) -> None:
    """By its graded name."""
    text = SOURCE.replace("    return value\n", "    return value.__name__\n", 1)
    assert student(text).call("anything", Part("fit")).returned.text() == "fit"


def test_gradients_by_the_arguments(student: Any) -> None:
    """Of a loss by its scores."""
    part = student()
    scores, labels = part.tensor(5, 3), torch.tensor([0, 1, 2, 0, 1])
    outcome = part.call("loss", scores, labels, gradients=True)
    expected = scores.clone().requires_grad_()
    torch.nn.functional.cross_entropy(expected, labels, label_smoothing=0.1).backward()
    assert torch.allclose(outcome.gradients[0], expected.grad)
    assert outcome.gradients[1] is None
    assert outcome.attached and outcome.gradient(0) is outcome.gradients[0]
    for asked, number in ((outcome, 1), (outcome, 2), (part.call("loss", scores, labels), 0)):
        with pytest.raises(CourseError, match=f"the gradient by argument {number + 1} of a call"):
            asked.gradient(number)


def test_a_gradient_that_does_not_arrive_is_the_students(student: Any) -> None:
    """And no AttributeError of the check's, which would read `outcome.gradients[0]` as a tensor."""
    text = SOURCE.replace("cross_entropy(scores, ", "cross_entropy(nn.Linear(3, 3)(scores.detach()), ")
    part = student(text)
    outcome = part.call("loss", part.tensor(5, 3), torch.tensor([0, 1, 2, 0, 1]), gradients=True)
    assert outcome.attached and outcome.gradients[0] is None
    with pytest.raises(Mismatch, match=r"No gradient reaches argument 1 of `loss\(scores, labels\)`"):
        outcome.gradient(0)


@pytest.mark.parametrize(
    ("returns", "taken", "words"),
    [
        ("None", lambda v: v.tensor(2, 3), "is nothing (None); it should be a tensor of floating point"),
        ("torch.ones(2, 2)", lambda v: v.tensor(2, 3), "of shape (2, 2); it should be a tensor of floating"),
        ("torch.ones(2, 3).long()", lambda v: v.tensor(2, 3), "a tensor of int64 of shape (2, 3); it should"),
        ("torch.ones(2) / 0", lambda v: v.tensor(2), "holds numbers that are not finite"),
        ("'4'", lambda v: v.number(), "is the text “4”; it should be a number"),
        ("5", lambda v: v.number(0, 1), "is 5; it should be from 0 to 1"),
        ("True", lambda v: v.number(), "is True; it should be a number"),
        ("2.0", lambda v: v.whole_number(), "is 2.0; it should be a whole number"),
        ("[1, 2]", lambda v: v.items(3, "parts"), "is a list of 2 values; it should be 3 parts"),
        ("{'a': 1}", lambda v: v.at("b"), "has no key “b”; it has “a”"),
        ("[0] * 60000", lambda v: v.items(), "is more values than can be looked at"),
        ("torch.nn.ReLU()", lambda v: v.number(), "is a `ReLU`; it should be a number"),
        ("3", lambda v: v.thing("module"), "is 3; it should be a module"),
        (
            "torch.ones(2) > 0",
            lambda v: v.tensor(2),
            "a tensor of bool of shape (2,); it should be a tensor of",
        ),
        ("torch.ones(2)", lambda v: v.tensor(2, truth=True), "it should be a tensor of truth values (bool)"),
        ("[1, 0]", lambda v: v.array(2, truth=True), "it should be a tensor of truth values (bool) of shape"),
    ],
)
def test_what_is_something_else_is_told_in_words(student: Any, returns: str, taken: Any, words: str) -> None:
    """What it is, and what it should be."""
    text = SOURCE.replace("    return value\n", f"    return {returns}\n", 1)
    value = student(text).call("anything", 1).returned
    with pytest.raises(Mismatch) as told:
        taken(value)
    assert words in told.value.message


@pytest.mark.parametrize("returns", ["torch.ones(2) > 0", "np.ones(2) > 0", "[True, True]"])
def test_a_mask_is_one_of_truth_values(student: Any, returns: str) -> None:
    """If that is asked for."""
    text = SOURCE.replace("    return value\n", f"    return {returns}\n", 1)
    value = student(text).call("anything", 1).returned
    assert value.tensor(2, truth=True).tolist() == [True, True]
    assert value.array(2, truth=True).dtype == np.bool_


def test_a_call_that_hangs_is_ended(student: Any) -> None:
    """Within the time of a call."""
    text = SOURCE.replace("    return value\n", "    while True: pass\n", 1)
    made = student(text)
    made.allow(2)
    with pytest.raises(WorkerFault, match="its calls took over 2 s"):
        made.call("anything", 1)


def test_arrays_of_an_object_are_filled_in_place(student: Any) -> None:
    """What is not a module has no state_dict; a form that does not fit is told."""
    scale = student().make("Scale", [2.0, 3.0])
    scale.fill("factor", np.array([5.0, 7.0]))
    assert scale.call("forward", np.ones((1, 2))).returned.array(1, 2).tolist() == [[5.0, 7.0]]
    with pytest.raises(Mismatch, match="weights of shape"):
        scale.fill("factor", np.ones(3))


def test_buffers_are_filled(student: Any) -> None:
    """As the running statistics of a batch norm are."""
    model = student().make("make_model", 3)
    names = model.call("state_dict").returned.plain
    model.fill("state_dict", {name: torch.full_like(value, 2) for name, value in names.items()})
    assert bool((model.get("2.running_mean").tensor(4) == 2).all())


def test_what_is_kept_shows_what_is_done_to_it(student: Any) -> None:
    """Arrays in a list stay the same objects, however often they are handed over."""
    part = student(SOURCE.replace("    return value\n", "    value[0] += 1\n", 1))
    kept = part.keep([np.zeros(2), np.ones(1)])
    part.call("anything", kept)
    part.call("anything", kept)
    first, second = kept.get("").items(2)
    assert first.array(2).tolist() == [2.0, 2.0] and second.array(1).tolist() == [1.0]


def test_a_fake_object_has_methods_that_answer(student: Any) -> None:
    """And that count their calls under their names."""
    text = SOURCE.replace(
        "    return value\n", "    return value.forward(2, training=True) + value.width\n", 1
    )
    forward = Fake.script([10], kind="function", name="forward")
    outcome = student(text).call("anything", FakeObject(forward=forward, width=3))
    assert outcome.returned.number() == 13
    assert [(call.args, call.kwargs) for call in outcome.calls_of("forward")] == [((2,), {"training": True})]


def test_of_what_is_no_module_the_mode_is_an_argument(student: Any) -> None:
    """A layer that is written by hand is told whether it trains."""
    text = SOURCE.replace(
        "def forward(self, x):", "def forward(self, x, training=True):\n        self.mode = training", 1
    )
    scale = student(text).make("Scale", 2.0)
    scale.call("forward", np.ones(1), training=False)
    assert scale.get("mode").truth() is False


def test_what_is_pytorchs_own_is_handed_over(student: Any) -> None:
    """A loss, and an optimizer of a module, which moves that module."""
    part = student()
    model = part.build("make_model", 3)
    before = model.weights()
    optimizer = part.keep(Library("torch.optim.SGD", model, lr=0.5))
    model.gradients(torch.randn(4, 1, 2, 2), torch.randn(4, 3))
    optimizer.call("step")
    assert not torch.equal(before["3.weight"], model.weights()["3.weight"])
    text = SOURCE.replace("    return value\n", "    return value(torch.zeros(1, 2), torch.tensor([0]))\n", 1)
    criterion = Library("torch.nn.CrossEntropyLoss")
    assert abs(student(text).call("anything", criterion).returned.number() - 0.6931) < 1e-3


def test_of_other_libraries_nothing_is_made() -> None:
    """What a worker is to import is never a matter of chance."""
    with pytest.raises(ValueError, match="is none of torch"):
        Library("os.system", "true")


def test_a_fake_sees_what_learns_at_which_rate(student: Any) -> None:
    """What requires gradients, what the optimizer holds, and what becomes of its rates as it takes steps."""
    text = SOURCE.replace(
        "    return value\n",
        """    model, train = value
    model[1].requires_grad_(False)
    groups = [{"params": model[1].parameters()}, {"params": model[3].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    return [train(model, optimizer=optimizer) for _ in range(2)]
""",
        1,
    )
    part = student(text)
    model = part.build("make_model", 3)
    watched = Fake.script([0.0], kind="function", name="watched", steps=2)
    first, second = part.call("anything", (model, watched)).calls_of("watched")
    assert set(first.rates) == {"1.weight", "1.bias", "3.weight", "3.bias"}
    assert set(first.learns) == {"2.weight", "2.bias", "3.weight", "3.bias"}
    assert first.moved == {"3.weight": 0.5, "3.bias": 0.5}
    assert second.moved["3.weight"] == pytest.approx(0.005)


def test_a_fake_that_trains_goes_through_the_loader(student: Any) -> None:
    """What a loader of the student's own does between its batches is done, after the last one, too."""
    text = SOURCE.replace(
        "    return value\n",
        """    model, train = value

    class Loader:
        def __len__(self):
            return 3

        def __iter__(self):
            for _ in range(3):
                yield torch.zeros(1)
                schedule.step()

    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    return [train(model, Loader(), optimizer) for _ in range(2)]
""",
        1,
    )
    part = student(text)
    model = part.build("make_model", 3)
    watched = Fake.script([0.0], kind="function", name="watched", steps=7)
    first, second = part.call("anything", (model, watched)).calls_of("watched")
    assert (first.moved["3.weight"], second.moved["3.weight"]) == (1.0, 0.125)


def test_a_fake_that_trains_has_gradients_and_changes_no_weights(student: Any) -> None:
    """What is done with gradients before a step has some; the weights are those that the fake left."""
    text = SOURCE.replace(
        "    return value\n",
        """    model, train = value
    optimizer, norms = torch.optim.Adam(model.parameters(), lr=1.0), []
    optimizer.register_step_pre_hook(
        lambda *_: norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
    )
    train(model, optimizer)
    return norms
""",
        1,
    )
    part = student(text)
    model = part.build("make_model", 3)
    before = model.weights()
    outcome = part.call("anything", (model, Fake.script([0.0], kind="function", name="watched", steps=2)))
    assert len(outcome.returned.plain) == 2 and all(norm > 0 for norm in outcome.returned.plain)
    assert all(torch.equal(value, before[name]) for name, value in model.weights().items())


@pytest.mark.parametrize(
    "signature", ["self, closure):", "self, closure=None):\n            assert closure is not None"]
)
def test_a_fake_that_trains_gives_a_closure_to_an_optimizer_that_needs_one(
    student: Any, signature: str
) -> None:
    """Sharpness-aware minimization computes the gradients twice for each step."""
    text = SOURCE.replace(
        "    return value\n",
        f"""    model, train = value

    class Twice(torch.optim.SGD):
        def step({signature}
            losses.append([float(closure()), float(closure())])
            gradients.append(all(each.grad is not None for each in model.parameters()))
            super().step()

    losses, gradients, optimizer = [], [], Twice(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    train(model, optimizer)
    return losses, gradients
""",
        1,
    )
    part = student(text)
    model = part.build("make_model", 3)
    before = model.weights()
    outcome = part.call("anything", (model, Fake.script([0.0], kind="function", name="watched", steps=2)))
    assert outcome.returned.plain == ([[0.0, 0.0]] * 2, [True, True])
    assert all(torch.equal(value, before[name]) for name, value in model.weights().items())


def test_a_fake_that_trains_gives_no_closure_to_an_optimizer_that_takes_none(student: Any) -> None:
    """A schedule hides what the optimizer's own step takes."""
    text = SOURCE.replace(
        "    return value\n",
        """    model, train = value
    taken = []

    class Own(torch.optim.SGD):
        def step(self):
            taken.append(super().step())

    optimizer = Own(model.parameters(), lr=1.0)
    torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    train(model, optimizer)
    return taken
""",
        1,
    )
    part = student(text)
    model = part.build("make_model", 3)
    outcome = part.call("anything", (model, Fake.script([0.0], kind="function", name="watched", steps=2)))
    assert outcome.returned.plain == [None, None]


def test_a_fake_of_a_module_has_the_name_that_it_was_given(student: Any) -> None:
    """A student's function may look settings up by the class of the model that it gets."""
    text = SOURCE.replace("    return value\n", "    return [type(each).__name__ for each in value]\n", 1)
    part = student(text)
    fakes = (Fake.script([0.0]), Fake.script([0.0], name="Network"), Fake.script([0.0], like=("Toy", {})))
    assert part.call("anything", fakes).returned.plain == ["model", "Network", "Toy"]


def test_without_an_optimizer_nothing_is_told_of_rates(student: Any) -> None:
    """Most fakes are called with neither module nor optimizer."""
    text = SOURCE.replace("    return value\n", "    return value(3)\n", 1)
    outcome = student(text).call("anything", Fake.script([1], kind="function", name="f", steps=5))
    [call] = outcome.calls_of("f")
    assert (call.learns, call.rates, call.moved) == ((), {}, {})
