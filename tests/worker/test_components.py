"""Building, calling, weights, fakes, and the watch for forbidden parts."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError
from grader.domain.program_run import AffineFake, Watched
from grader.protocol.link import StudentRaised
from grader.protocol.replies import Built, Called, Done, FakeConstruction, WeightValues
from grader.protocol.requests import Build, Call, SetWeights, Weights

TEXT = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.a = nn.Linear(dim, dim)
        self.unused = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(self.a(x))

class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.first = nn.Linear(dim, dim)
        self.second = nn.Linear(dim, dim)
        self.second.weight = self.first.weight
    def forward(self, x):
        return None if len(x) == 1 else self.second(self.first(x)).half()

class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)

class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.parts = nn.ModuleList([PreNorm(dim, Attention(dim)) for _ in range(depth)])
    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x
"""
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_weights_are_read_and_written(load: Callable[..., Any]) -> None:
    """Parameters by name, shared ones once; gradients of the sum that was asked for."""
    worker = load(TEXT)
    built = worker.ask(Build("Attention", (4,)), Built)
    assert [p.name for p in built.parameters] == ["a.weight", "a.bias", "unused.weight", "unused.bias"]
    assert [(m.path, m.type, m.parameters) for m in built.modules][1:3] == [
        ("a", "Linear", 20),
        ("unused", "Linear", 6),
    ]
    assert next(m for m in built.modules if m.path == "drop").dropout == 0.5
    arrays = {"a.weight": np.eye(4, dtype=np.float32) * 2, "a.bias": np.ones(4, dtype=np.float32)}
    worker.ask(SetWeights(built.handle, arrays), Done)
    values = worker.ask(Weights(built.handle), WeightValues).arrays
    np.testing.assert_array_equal(values["a.weight"], arrays["a.weight"])
    request = Call(built.handle, gradients=True, arrays={"0": X, "cotangent": np.ones_like(X)})
    called = worker.ask(request, Called)
    np.testing.assert_allclose(called.arrays["output"], 2 * X + 1)
    np.testing.assert_allclose(called.arrays["gradient:input"], np.full_like(X, 2))
    assert called.no_gradient == ("unused.weight", "unused.bias")


def test_training_mode_and_seed_decide_what_is_dropped(load: Callable[..., Any]) -> None:
    """The same seed drops the same values; evaluation drops none."""
    worker = load(TEXT)
    handle = worker.ask(Build("Attention", (4,)), Built).handle

    def output(*, train: bool, seed: int) -> Any:
        return worker.ask(Call(handle, train, False, seed, arrays={"0": X}), Called).arrays["output"]

    np.testing.assert_array_equal(output(train=True, seed=1), output(train=True, seed=1))
    assert (output(train=True, seed=1) != output(train=True, seed=2)).any()
    np.testing.assert_array_equal(output(train=False, seed=1), output(train=False, seed=2))


def test_several_calls_in_one_request_are_calls_of_their_own(load: Callable[..., Any]) -> None:
    """Each gets the inputs and the mode that were asked for, and draws other values than the one before."""
    worker = load(
        TEXT.replace("return self.drop(self.a(x))", "y = self.drop(x + 0); x.zero_(); self.eval(); return y")
    )
    handle = worker.ask(Build("Attention", (4,)), Built).handle
    called = worker.ask(Call(handle, train=True, times=3, arrays={"0": X}), Called)
    outputs = [called.arrays[name] for name in ("output", "output1", "output2")]
    assert all(((output == 0) | (output == 2 * X)).all() and output.any() for output in outputs)
    assert all((one != other).any() for one, other in itertools.combinations(outputs, 2))
    assert called.calls_by == (0, 0, 0)


def test_the_seed_decides_the_initialization(load: Callable[..., Any]) -> None:
    """Equal seeds give equal weights, in whatever order things are built."""
    worker = load(TEXT)
    handles = [worker.ask(Build("Attention", (4,), seed=seed), Built).handle for seed in (1, 2, 1)]
    one, two, again = (worker.ask(Weights(handle), WeightValues).arrays["a.weight"] for handle in handles)
    np.testing.assert_array_equal(one, again)
    assert (one != two).any()


def test_odd_outputs_arrive_as_they_are(load: Callable[..., Any]) -> None:
    """None is named, half precision is widened, shared parameters are listed once."""
    worker = load(TEXT)
    built = worker.ask(Build("FeedForward", (4, 8)), Built)
    shared = next(p for p in built.parameters if p.name == "first.weight")
    assert shared.shared_with == ("first.weight", "second.weight")
    assert [p.name for p in built.parameters].count("second.weight") == 0
    assert worker.ask(Call(built.handle, arrays={"0": X[:1]}), Called).result == "NoneType"
    assert worker.ask(Call(built.handle, arrays={"0": X}), Called).arrays["output"].dtype == np.float32


def test_fakes_are_numbered_recorded_and_known(load: Callable[..., Any]) -> None:
    """Each instance has its own behavior; calls come with their inputs; others are not disturbed."""
    worker = load(TEXT)
    replace = {
        "Attention": AffineFake(scale=(2.0, 3.0), shift=(0.0, 1.0), roll=1, parameters=5),
        "PreNorm": AffineFake(scale=(0.5,), wraps=True),
    }
    built = worker.ask(Build("Transformer", (4, 2, 1, 1, 1), replace=replace), Built)
    assert sum(int(np.prod(p.shape)) for p in built.parameters) == 10
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert [(c.component, c.instance) for c in called.calls] == [
        ("PreNorm", 0),
        ("Attention", 0),
        ("PreNorm", 1),
        ("Attention", 1),
    ]
    first = np.roll(0.5 * X, 1, axis=1) * 2.0
    np.testing.assert_allclose(called.arrays["call2"], first)
    np.testing.assert_allclose(called.arrays["output"], np.roll(0.5 * first, 1, axis=1) * 3.0 + 1.0)
    plain = worker.ask(Build("Transformer", (4, 2, 1, 1, 1)), Built)
    assert {m.type for m in plain.modules} >= {"Attention", "PreNorm", "Linear"}


MAKING = """
        self.one = Attention(dim, heads, dim_head=dim_head, dropout=float("inf"))
        self.two = PreNorm(dim, fn=self.one)
        odd = {"a": 1.5, "b": float("nan"), "name\\ud800" * 90: "\\ud800", "flag": False}
        self.odd = Attention(torch.tensor(3), 2**60, "x" * 1000, None, True, *range(100), **odd)
        """


def test_what_fakes_are_constructed_with_is_told(load: Callable[..., Any]) -> None:
    """Plain values as they are; modules, tensors and numbers without end as None; nothing grows large."""
    worker = load(
        TEXT.replace("self.parts = nn.ModuleList(", f"{MAKING.strip()}\n        self.parts = nn.ModuleList(")
    )
    replace = {"Attention": AffineFake(), "PreNorm": AffineFake(wraps=True)}
    built = worker.ask(Build("Transformer", (4, 1, 3, 5, 7), replace=replace), Built)
    one, two, odd, attention, pre_norm = built.made
    assert one == FakeConstruction("Attention", (4, 3), {"dim_head": 5, "dropout": None})
    assert two == FakeConstruction("PreNorm", (4,), {"fn": None})
    assert (attention, pre_norm) == (
        FakeConstruction("Attention", (4,)),
        FakeConstruction("PreNorm", (4, None)),
    )
    assert odd.args == (None, None, "x" * 200, None, True, *range(27))
    assert list(odd.kwargs.values()) == [1.5, None, "?", False]
    assert [len(name) for name in odd.kwargs] == [1, 1, 200, 4]


def test_as_many_constructions_are_told_as_a_model_can_need(load: Callable[..., Any]) -> None:
    """More are made all the same; copies are not told, and push nothing out."""
    text = TEXT.replace(
        "self.parts = nn.ModuleList([PreNorm(dim, Attention(dim)) for _ in range(depth)])",
        "self.parts = nn.ModuleList([Attention(n) for n in range(depth)])\n"
        "        import copy\n"
        "        self.parts.append(copy.deepcopy(self.parts[0]))",
    )
    built = load(text).ask(
        Build("Transformer", (4, 300, 1, 1, 1), replace={"Attention": AffineFake()}), Built
    )
    assert [made.args for made in built.made] == [(n,) for n in range(256)]
    assert sum(module.type == "Attention" for module in built.modules) == 301


COPIES = {
    "one by one": "[copy.deepcopy(first) for _ in range(depth)]",
    "as a block": "[copy.deepcopy(nn.Sequential(first)) for _ in range(depth)]",
}


@pytest.mark.parametrize("copies", COPIES)
def test_a_copy_of_a_fake_is_an_instance_of_its_own(load: Callable[..., Any], copies: str) -> None:
    """Its number, its behavior and what it wraps are its own; its calls are recorded with the others."""
    text = TEXT.replace(
        "self.parts = nn.ModuleList([PreNorm(dim, Attention(dim)) for _ in range(depth)])",
        "import copy\n"
        "        first = PreNorm(dim, Attention(dim))\n"
        f"        self.parts = nn.ModuleList({COPIES[copies]})",
    )
    replace = {
        "Attention": AffineFake(scale=(7.0, 2.0, 3.0), parameters=5),
        "PreNorm": AffineFake(shift=(9.0, 1.0, 0.5), wraps=True),
    }
    worker = load(text)
    built = worker.ask(Build("Transformer", (4, 2, 1, 1, 1), replace=replace), Built)
    assert [made.component for made in built.made] == ["Attention", "PreNorm"]
    assert sum(int(np.prod(p.shape)) for p in built.parameters) == 10, "every copy holds its own"
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert [(c.component, c.instance) for c in called.calls] == [
        ("PreNorm", 1),
        ("Attention", 1),
        ("PreNorm", 2),
        ("Attention", 2),
    ]
    np.testing.assert_allclose(called.arrays["output"], ((X + 1.0) * 2.0 + 0.5) * 3.0)


STACKED = """
import torch
from torch import nn
from torch.func import functional_call, stack_module_state

class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.a = nn.Linear(dim, dim)
    def forward(self, x):
        return self.a(x)

class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        stacked, _ = stack_module_state([Attention(dim) for _ in range(depth)])
        self.names = list(stacked)
        self.stacked = nn.ParameterDict()
        for name, value in stacked.items():
            self.stacked[name.replace(".", "_")] = nn.Parameter(value.detach())
        self.program = [Attention(dim).to("meta")]
        self.depth = depth
    def forward(self, x):
        rows = {name: self.stacked[name.replace(".", "_")].unbind(0) for name in self.names}
        for number in range(self.depth):
            numbers = {name: row[number] for name, row in rows.items()}
            x = functional_call(self.program[0], numbers, (x,))
        return x
"""


def test_a_fake_with_lent_weights_is_the_one_whose_weights_they_are(load: Callable[..., Any]) -> None:
    """One module that is called with each row of what is stacked is as many parts."""
    worker = load(STACKED)
    fake = AffineFake(scale=(2.0, 3.0), shift=(1.0, 0.0), parameters=5)
    built = worker.ask(Build("Transformer", (4, 2, 1, 1, 1), replace={"Attention": fake}), Built)
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert [call.instance for call in called.calls] == [0, 1]
    np.testing.assert_allclose(called.arrays["output"], 3 * (2 * X + 1), rtol=1e-5)


def test_a_module_that_is_lent_copies_of_its_own_weights_is_one(load: Callable[..., Any]) -> None:
    """Weights that nobody learns apart make no parts of their own."""
    shared = STACKED.replace(
        "self.program = [Attention(dim)", "self.one = Attention(dim)\n        self.program = [self.one"
    )
    shared = shared.replace('.to("meta")]', "]").replace(
        'rows = {name: self.stacked[name.replace(".", "_")].unbind(0) for name in self.names}',
        "rows = {n: torch.stack([p] * self.depth).unbind(0) for n, p in self.one.named_parameters()}",
    )
    worker = load(shared)
    built = worker.ask(
        Build("Transformer", (4, 2, 1, 1, 1), replace={"Attention": AffineFake(parameters=5)}), Built
    )
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert len({call.instance for call in called.calls}) == 1 and len(called.calls) == 2


def test_a_submodule_is_stood_in_for_by_its_path(load: Callable[..., Any]) -> None:
    """Also in a list; the rest stays, and calls are recorded under the path."""
    worker = load(TEXT)
    sizes = (4, 2, 1, 1, 1)
    substitute = {"parts.0.fn": AffineFake(scale=(2.0,)), "parts.1": AffineFake(shift=(1.0,))}
    built = worker.ask(Build("Transformer", sizes, substitute=substitute), Built)
    assert [m.path for m in built.modules if m.origin.startswith("grader.")] == ["parts.0.fn", "parts.1"]
    assert built.parameters == ()
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert [c.component for c in called.calls] == ["parts.0.fn", "parts.1"]
    np.testing.assert_allclose(called.arrays["call1"], 2 * X)
    np.testing.assert_allclose(called.arrays["output"], 2 * X + 1)
    whole = worker.ask(Build("Transformer", sizes), Built)
    assert not any(m.origin.startswith("grader.") for m in whole.modules)


def test_a_path_that_is_not_there_is_told_and_the_worker_goes_on(load: Callable[..., Any]) -> None:
    """A model whose modules differ from time to time is the student's."""
    worker = load(TEXT)
    request = Build("Transformer", (4, 2, 1, 1, 1), substitute={"blocks.0.fn": AffineFake()})
    with pytest.raises(StudentRaised, match="blocks"):
        worker.ask(request, Built)
    assert worker.ask(Build("Attention", (4,)), Built).parameters


def test_a_copied_inner_fake_still_tells_its_calls(load: Callable[..., Any]) -> None:
    """PreNorm may keep a copy of what it is given."""
    worker = load(TEXT.replace("self.fn = fn", "import copy\n        self.fn = copy.deepcopy(fn)"))
    built = worker.ask(Build("PreNorm", (4,), inner=AffineFake(shift=(1.0,))), Built)
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert [(c.component, c.instance) for c in called.calls] == [("inner", -1)]
    np.testing.assert_allclose(called.arrays["output"], X + 1)


def test_an_inner_fake_shows_its_keywords(load: Callable[..., Any]) -> None:
    """What PreNorm hands on to its fn is seen."""
    worker = load(TEXT)
    built = worker.ask(Build("PreNorm", (4,), inner=AffineFake(shift=(1.0,))), Built)
    arrays = {"0": X, "keyword:extra": 10 * np.ones_like(X)}
    called = worker.ask(Call(built.handle, arrays=arrays), Called)
    np.testing.assert_allclose(called.arrays["output"], X + 11)
    assert (called.calls[0].component, called.calls[0].instance) == ("inner", -1)


def test_what_is_no_module_is_told(load: Callable[..., Any]) -> None:
    """A class that is not an nn.Module cannot be graded."""
    worker = load("class PreNorm:\n    def __init__(self, dim, fn):\n        pass\n")
    with pytest.raises(StudentRaised, match=r"not an nn\.Module"):
        worker.ask(Build("PreNorm", (4, 5)), Built)


SPELLED = {
    "getattr": "getattr(nn, 'Multihead' + 'Attention')(8, 2)",
    "importlib": "importlib.import_module('torch.nn.modules.activation').MultiheadAttention(8, 2)",
    "derived": "type('Mine', (nn.MultiheadAttention,), {})(8, 2)",
    "vars": "vars(nn)['TransformerEncoderLayer'](8, 2)",
    "module": "importlib.import_module('torch.nn.modules.trans' + 'former').TransformerDecoderLayer(8, 2)",
    "hidden": "[getattr(__import__('torchvision').models, 'vision_trans' + 'former').MLPBlock(8, 8, 0.0)][0]",
}
FORBIDDEN = {
    "vars": "torch.nn.Transformer*",
    "module": "torch.nn.modules.transformer",
    "hidden": "torchvision.models.vision_transformer",
}


@pytest.mark.parametrize("spelling", SPELLED)
def test_forbidden_parts_are_seen_however_they_are_spelled(load: Callable[..., Any], spelling: str) -> None:
    """Construction is watched, not the name in the source."""
    text = TEXT.replace("self.drop = nn.Dropout(0.5)", f"self.drop = {SPELLED[spelling]}").replace(
        "import torch\n", "import importlib\nimport torch\n"
    )
    wanted = FORBIDDEN.get(spelling, "torch.nn.MultiheadAttention")
    worker = load(text, forbidden=("timm", wanted))
    assert worker.reached == {}
    worker.ask(Build("Attention", (8,)), Built)
    assert set(worker.reached.values()) == {(wanted,)}


def test_clean_code_is_not_accused(load: Callable[..., Any], solved: str, assignment: Assignment) -> None:
    """The reference solution reaches none of the forbidden parts, built and called."""
    worker = load(solved, forbidden=tuple(rule.pattern for rule in assignment.forbidden))
    built = worker.ask(Build("$model"), Built)
    images = np.zeros((1, 1, 28, 28), dtype=np.float32)
    called = worker.ask(Call(built.handle, arrays={"0": images}), Called)
    assert worker.loaded.problems == ()
    assert not called.no_gradient and worker.link.watch.watched == Watched()
    assert sum(int(np.prod(p.shape)) for p in built.parameters) == 499_462


def test_an_import_that_nothing_uses_is_not_held_against_anyone(load: Callable[..., Any]) -> None:
    """What uses it is found in the source, and by what is constructed; here it is only stood in for."""
    worker = load(
        "import vit_pytorch\n\nclass Attention(vit_pytorch.ViT):\n    pass", forbidden=("vit_pytorch",)
    )
    assert worker.reached == {}
    assert worker.loaded.absent_modules == ("vit_pytorch",)


def test_forbidden_functions_and_imports_are_seen(load: Callable[..., Any]) -> None:
    """A call while running, and a module imported while constructing."""
    text = TEXT.replace(
        "return self.drop(self.a(x))",
        "return getattr(torch.nn.functional, 'scaled_dot_product_' + 'attention')(x, x, x)",
    ).replace("self.drop = nn.Dropout(0.5)", "self.drop = __import__('mailbox')")
    worker = load(text, forbidden=("torch.nn.functional.scaled_dot_product_attention", "mailbox"))
    built = worker.ask(Build("Attention", (4,)), Built)
    worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert set(worker.reached) == {"torch.nn.functional.scaled_dot_product_attention", "mailbox"}


def test_arguments_keywords_and_double_precision(load: Callable[..., Any]) -> None:
    """What a check hands to the constructor arrives, and double makes everything float64."""
    text = """
import torch
class FeedForward(torch.nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.layer = torch.nn.Linear(dim, hidden_dim)
        self.register_buffer("rate", torch.tensor(dropout))
        self.register_buffer("flag", torch.tensor([True]))
    def forward(self, x, gain=1):
        return self.layer(x) * gain
"""
    worker = load(text)
    built = worker.ask(Build("FeedForward", (4,), {"hidden_dim": 3, "dropout": 0.25}, double=True), Built)
    values = worker.ask(Weights(built.handle), WeightValues).arrays
    assert values["layer.weight"].shape == (3, 4)
    assert (values["layer.weight"].dtype, values["flag"].dtype) == (np.float64, np.bool_)
    assert values["rate"].shape == () and values["rate"] == 0.25
    x = X.astype(np.float64)
    arrays = {"0": x, "keyword:gain": np.array(2.0)}
    called = worker.ask(Call(built.handle, arrays=arrays), Called)
    wanted = 2 * (x @ values["layer.weight"].T + values["layer.bias"])
    np.testing.assert_allclose(called.arrays["output"], wanted)


NO_GRADIENT = {
    "detached": ("self.a(x).detach()", ("a.weight", "a.bias", "unused.weight", "unused.bias")),
    "data": ("x + self.a(x).data * 0", ("a.weight", "a.bias", "unused.weight", "unused.bias")),
    "all": ("self.a(x)", ("unused.weight", "unused.bias")),
}


@pytest.mark.parametrize("case", NO_GRADIENT)
def test_parameters_without_gradient_are_named(load: Callable[..., Any], case: str) -> None:
    """Whether the output has no graph at all, or one that misses them."""
    output, missing = NO_GRADIENT[case]
    worker = load(TEXT.replace("return self.drop(self.a(x))", f"return {output}"))
    handle = worker.ask(Build("Attention", (4,)), Built).handle
    called = worker.ask(Call(handle, gradients=True, arrays={"0": X, "cotangent": np.ones_like(X)}), Called)
    assert called.no_gradient == missing
    if case == "data":
        np.testing.assert_array_equal(called.arrays["gradient:input"], np.ones_like(X))


def test_gradients_of_one_call_do_not_add_to_those_of_the_last(load: Callable[..., Any]) -> None:
    """Each call starts from none."""
    worker = load(TEXT)
    handle = worker.ask(Build("Attention", (4,)), Built).handle
    request = Call(handle, gradients=True, arrays={"0": X, "cotangent": np.ones_like(X)})
    first, second = (worker.ask(request, Called).arrays["gradient:a.bias"] for _ in range(2))
    np.testing.assert_array_equal(first, np.full(4, 6.0))
    np.testing.assert_array_equal(second, first)


def test_engine_faults_are_told_from_the_students(load: Callable[..., Any]) -> None:
    """A request that cannot be answered is ours, and the worker goes on."""
    worker = load(TEXT)
    with pytest.raises(EngineError, match="IndexError"):
        worker.ask(Weights(17), WeightValues)
    handle = worker.ask(Build("Attention", (4,)), Built).handle
    with pytest.raises(EngineError, match="KeyError"):
        worker.ask(SetWeights(handle, {"nothing": np.zeros(1)}), Done)
    with pytest.raises(StudentRaised, match="shapes"):
        worker.ask(Call(handle, arrays={"0": np.ones((2, 3), dtype=np.float32)}), Called)
    with pytest.raises(StudentRaised, match="TypeError"):
        worker.ask(Build("Attention"), Built)
    assert worker.ask(Call(handle, arrays={"0": X}), Called).result == "tensor"


@pytest.mark.parametrize(
    "raised", ["SystemExit(0)", "KeyboardInterrupt()", "RecursionError()", "MemoryError()"]
)
def test_whatever_the_students_code_raises_is_the_students(load: Callable[..., Any], raised: str) -> None:
    """Also what is not an Exception; the worker goes on."""
    worker = load(TEXT.replace("return self.drop(self.a(x))", f"raise {raised}"))
    handle = worker.ask(Build("Attention", (4,)), Built).handle
    for _ in range(2):
        with pytest.raises(StudentRaised, match=raised.partition("(")[0]) as caught:
            worker.ask(Call(handle, arrays={"0": X}), Called)
        assert caught.value.problem.where.startswith("homework.py:")


KNOWN_TO_OTHERS = """
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super(Attention, self).__init__()
        self.width = heads * dim_head
        self.a = nn.Linear(dim, dim)
    def forward(self, x):
        return self.a(x)

class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.attention = Attention(dim, heads, dim_head)
        self.out = nn.Linear(self.attention.width, dim)
    def forward(self, x):
        y, weights = self.attention(x, return_weights=True)
        return y + weights.sum() * %s
"""


def test_a_fake_has_the_members_of_the_own_part_and_no_parameters_of_it(
    load: Callable[..., Any],
) -> None:
    """What a part knows of another one's object is there; what it is made of is not."""
    replace = {"Attention": AffineFake(scale=(2.0,), heads=3)}
    worker = load(KNOWN_TO_OTHERS % "0.0")
    built = worker.ask(Build("Transformer", (4, 1, 2, 5, 1), replace=replace), Built)
    assert {p.name: p.shape for p in built.parameters} == {"out.weight": (4, 10), "out.bias": (4,)}


def test_a_fake_that_is_asked_by_a_flag_gives_weights(load: Callable[..., Any]) -> None:
    """(batch, heads, n, n), each row of which sums to 1."""
    worker = load(KNOWN_TO_OTHERS % "1.0")
    replace = {"Attention": AffineFake(scale=(2.0,), heads=3)}
    built = worker.ask(Build("Transformer", (4, 1, 2, 5, 1), replace=replace), Built)
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert np.allclose(called.arrays["output"], 2 * X + 2 * 3 * 3)  # batch, heads and rows


def test_a_member_that_the_own_part_lacks_too_is_missing(load: Callable[..., Any]) -> None:
    worker = load(KNOWN_TO_OTHERS.replace("self.attention.width", "self.attention.size") % "0.0")
    with pytest.raises(StudentRaised, match="'Attention' object has no attribute 'size'"):
        worker.ask(Build("Transformer", (4, 1, 2, 5, 1), replace={"Attention": AffineFake()}), Built)


SECOND_NAME = """
from torch import nn

class Attention(nn.Module):
    scale = 0.25
    make_norm = staticmethod(nn.LayerNorm)
    def __init__(self, dim, dropout=0.0):
        super().__init__()
        self.a, self.drop = nn.Linear(dim, dim), nn.Dropout(dropout)
    def attend(self, x, weights=False):
        y = self.drop(self.a(x))
        return (y, y.mean()) if weights else y
    def widths(self, x):
        return 3 * x
    def forward(self, x):
        return self.attend(x)

class Transformer(nn.Module):
    def __init__(self, dim, dropout=0.0):
        super().__init__()
        self.norm = Attention.make_norm(dim)
        self.layers = nn.ModuleList([Attention(dim, dropout) for _ in range(2)])
    def forward(self, x):
        for layer in self.layers:
            %s
        return x * Attention.scale
"""


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    "line", ["x, _ = layer.attend(x, weights=True)", "x = layer.attend(x)", "x = layer(x)"]
)
def test_a_second_name_of_forward_is_answered_by_the_fake(
    load: Callable[..., Any], line: str, train: bool, dropout: float
) -> None:
    """Where a method gives what forward gives; and the fake's class has the constants of the own one."""
    worker = load(SECOND_NAME % line)
    replace = {"Attention": AffineFake(scale=(2.0, 3.0))}
    built = worker.ask(Build("Transformer", (4, dropout), replace=replace), Built)
    called = worker.ask(Call(built.handle, train=train, arrays={"0": X}), Called)
    assert np.allclose(called.arrays["output"], 2 * 3 * X / 4)
    assert [call.instance for call in called.calls] == [0, 1]


def test_another_method_is_the_own_parts(load: Callable[..., Any]) -> None:
    """It gives something else than forward, so that the fake is not called."""
    worker = load(SECOND_NAME % "x = layer.widths(x)")
    built = worker.ask(Build("Transformer", (4,), replace={"Attention": AffineFake()}), Built)
    called = worker.ask(Call(built.handle, arrays={"0": X}), Called)
    assert np.allclose(called.arrays["output"], 9 * X / 4) and called.calls == ()


def test_a_constant_that_the_own_class_lacks_too_is_missing(load: Callable[..., Any]) -> None:
    worker = load((SECOND_NAME % "pass").replace("Attention.make_norm", "Attention.make_row"))
    with pytest.raises(StudentRaised, match="'Attention' has no attribute 'make_row'"):
        worker.ask(Build("Transformer", (4,), replace={"Attention": AffineFake()}), Built)
