"""The watch for forbidden parts: what is used is told at once, and what disturbs the watch is noticed."""

from collections.abc import Callable
from typing import Any

import pytest

from grader.domain.analyzed_program import LOADING, Place
from grader.domain.program_run import Prying
from grader.protocol.frames import FrameLimit
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import Built, Called
from grader.protocol.requests import Build, Call

MHA = "torch.nn.MultiheadAttention"
FUNCTION = "torch.nn.functional.multi_head_attention_forward"
CORE = "torch.nn.functional.scaled_dot_product_attention"
ALL = ("torch.nn.Transformer*", MHA, FUNCTION, CORE)
LIMIT = FrameLimit()

START = """
import torch
from torch import nn
import torch.nn.functional as F

def hidden(module, start):
    return next(value for name, value in list(vars(module).items()) if name.startswith(start))

class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        {made}
    def forward(self, x):
        return {called}
"""


@pytest.fixture
def attention(load: Callable[..., Any]) -> Callable[..., Any]:
    """A worker with an Attention that does something when it is made, and then returns a value."""

    def loaded(made: str = "pass", called: str = "x", forbidden: tuple[str, ...] = ALL) -> Any:
        made = "\n        ".join(made.strip().split("\n"))
        return load(START.format(made=made, called=called), forbidden=forbidden)

    return loaded


def built(worker: Any) -> Any:
    """Have Attention made; then every part is tried."""
    worker.link.watch.stage = "Attention"
    answer = worker.ask(Build("Attention", (4,), seed=11), Built)
    worker.link.watch.require_one(11)
    worker.link.prove_watch(12, seconds=20, limit=LIMIT)
    return answer


# --- what is used is told -----------------------------------------------------------------------------------

UNHIDDEN = {
    "by its name": (f"self.inner = {MHA.removeprefix('torch.')}(4, 2)", MHA),
    "by a computed name": ("self.inner = getattr(nn, 'Multihead' + 'Attention')(4, 2)", MHA),
    "without its constructor": (
        "inner = hidden(nn, 'Multihead').__new__(hidden(nn, 'Multihead'))\n"
        "nn.Module.__init__(inner)\ninner._reset_parameters = None\n"
        "try: hidden(nn, 'Multihead').forward(inner, 1, 2, 3)\nexcept Exception: pass",
        MHA,
    ),
    "by the function in it": ("try: hidden(F, 'multi_h')(*[None] * 16)\nexcept Exception: pass", FUNCTION),
    "by what it is the alias of": ("hidden(torch._C._nn, 'scaled_dot')(*[torch.ones(1, 2, 2)] * 3)", CORE),
    "by a class made of it": ("type('Own', (hidden(nn, 'Multihead'),), {})(4, 2)", MHA),
    "by unpickling": (
        "import pickle\nself.inner = pickle.loads(b'ctorch.nn\\nMultiheadAttention\\n.')(4, 2)",
        MHA,
    ),
    "in a thread": (
        "import threading\nthread = threading.Thread(target=hidden(nn, 'Multihead'), args=(4, 2))\n"
        "thread.start()\nthread.join()",
        MHA,
    ),
    "as another's own": ("self.inner = nn.Sequential(hidden(nn, 'Multihead')(4, 2))", MHA),
    "by a wrapped function": ("import functools\nfunctools.partial(hidden(nn, 'Multihead'), 4)(2)", MHA),
}


@pytest.mark.parametrize("way", UNHIDDEN)
def test_a_use_is_told_at_once_however_it_comes_about(attention: Any, way: str) -> None:
    made, part = UNHIDDEN[way]
    worker = attention(made)
    built(worker)
    assert worker.reached == {part: (part,)}
    assert worker.link.watch.watched.unproven == ()


@pytest.mark.parametrize(
    "use",
    [
        "hidden(metrics, 'f1_sc')([0, 1], [0, 1])",
        "model_selection.cross_validate(DummyClassifier(), [[0]] * 8, [0, 1] * 4, scoring='f1', cv=2)",
    ],
)
def test_what_a_package_takes_from_its_modules_is_its_own(attention: Any, use: str) -> None:
    """Also where another part of the library uses it because the student names it."""
    imports = "from sklearn import metrics, model_selection\nfrom sklearn.dummy import DummyClassifier\n"
    worker = attention(f"{imports}{use}", forbidden=("sklearn.metrics*",))
    built(worker)
    assert "sklearn.metrics.f1_score" in worker.reached
    assert worker.link.watch.watched.unproven == ()


def test_what_a_library_does_while_it_is_imported_is_its_own(load: Callable[..., Any]) -> None:
    """`sklearn.model_selection` asks `sklearn.metrics` for the names of its measures."""
    worker = load("import sklearn.model_selection\n\nclass Attention: ...\n", forbidden=("sklearn.metrics*",))
    assert worker.reached == {} and worker.link.watch.watched.unproven == ()


def test_what_an_import_is_made_to_call_is_the_students_use(attention: Any) -> None:
    """Only a module that is executed works for itself, and no function that a loader of one's own names."""
    made = """
import functools, importlib.machinery, importlib.util
class Loader:
    exec_module = staticmethod(lambda module: None)
part = functools.partial(hidden(nn, 'TransformerEncoderL'), 4, 2, 8, 0.0, F.relu)
Loader.create_module = staticmethod(part)
try:
    importlib.util.module_from_spec(importlib.machinery.ModuleSpec('own', Loader()))
except Exception: pass
"""
    worker = attention(made)
    built(worker)
    assert "torch.nn.TransformerEncoderLayer" in worker.reached


def test_a_use_comes_with_the_students_line(attention: Any) -> None:
    worker = attention("pass\nself.inner = hidden(nn, 'Multihead')(4, 2)")
    built(worker)
    [part] = [part for part in worker.link.watch.watched.reached if not part.inside]
    assert (part.stage, part.place) == ("Attention", Place("homework.py", 13))


def test_what_a_part_uses_inside_is_told_as_that(attention: Any) -> None:
    """A forbidden layer consists of other forbidden parts: these are not the student's writing."""
    worker = attention("self.inner = nn.TransformerEncoderLayer(4, 2, batch_first=True)", "self.inner(x)")
    answer = built(worker)
    worker.ask(
        Call(answer.handle, train=True, arrays={"0": __import__("numpy").ones((2, 3, 4), "f4")}), Called
    )
    reached = worker.link.watch.watched.reached
    assert set(worker.reached) == {"torch.nn.TransformerEncoderLayer"}
    assert {(part.name, part.inside) for part in reached if part.inside} == {
        (MHA, "torch.nn.TransformerEncoderLayer"),
        (FUNCTION, MHA),
        (CORE, FUNCTION),
    }


def test_what_is_taken_out_of_a_part_is_the_students_use(attention: Any) -> None:
    worker = attention(
        "self.inner = nn.TransformerEncoderLayer(4, 2, batch_first=True).self_attn", "self.inner(x, x, x)[0]"
    )
    answer = built(worker)
    worker.ask(Call(answer.handle, arrays={"0": __import__("numpy").ones((2, 3, 4), "f4")}), Called)
    assert set(worker.reached) == {"torch.nn.TransformerEncoderLayer", MHA}


def test_what_is_used_while_loading_is_told(load: Callable[..., Any]) -> None:
    worker = load(
        "from torch import nn\n\nclass Attention:\n    inner = nn.Transformer(4, 2, 1, 1)", forbidden=ALL
    )
    assert set(worker.reached) == {"torch.nn.Transformer"}
    [stage] = {part.stage for part in worker.link.watch.watched.reached}
    assert stage == LOADING


# --- what would hide it -------------------------------------------------------------------------------------

FIND = "part = hidden(nn, 'Multihead')\nstart = part.__init__"
HIDING = {
    "the closure of the wrapper": f"""
{FIND}
import inspect
found = inspect.getclosurevars(start).nonlocals
for name in ('self', 'watch'):
    if name in found:
        found[name].seen.clear()
if 'original' in found:
    found['original'](part.__new__(part), 4, 2)
else:
    part(4, 2)
""",
    "the wrapped function": f"""
{FIND}
import inspect
inspect.unwrap(start)(part.__new__(part), 4, 2)
""",
    "cells": f"""
{FIND}
cells = [cell.cell_contents for cell in start.__closure__ or ()]
part(4, 2)
""",
    "a list that is kept": f"""
{FIND}
import sys
watch = sys.modules['grader.worker.forbidden_watch'].ForbiddenWatch
watch._record = watch.imported = lambda *_: None
part(4, 2)
""",
    "what sends": f"""
{FIND}
import os, sys
send = sys.modules['grader.protocol.typed_messages'].__dict__.pop('send')
write, os.write = os.write, lambda *_: 0
part(4, 2)
os.write = write
sys.modules['grader.protocol.typed_messages'].send = send
""",
    "builtins": f"""
{FIND}
import builtins
kept, builtins.len = builtins.len, lambda *_: 0
part(4, 2)
builtins.len = kept
""",
}


@pytest.mark.parametrize("way", HIDING)
def test_a_use_is_told_whatever_is_done_to_hide_it(attention: Any, way: str) -> None:
    worker = attention(HIDING[way])
    built(worker)
    assert MHA in worker.reached


SEEN = {
    "the code of the watched function": (
        f"{FIND}\noriginal = [c for c in start.__code__.co_consts if callable(c)][-1]\n"
        "inner = part.__new__(part)\noriginal(inner, 4, 2)",
        {Prying.CODE_OBJECTS},
    ),
    "other code for it": (
        f"{FIND}\nstart.__code__ = (lambda *a: None).__code__.replace(co_freevars=('__class__',))",
        {Prying.CODE_OBJECTS},
    ),
    "frames": ("import sys\nsys._getframe()", {Prying.FRAMES}),
    "a trace": ("import sys\nsys.settrace(lambda *a: None)\nsys.settrace(None)", {Prying.FRAMES}),
    "a frame of an exception": (
        "try: 1 / 0\nexcept Exception as error: error.__traceback__.tb_frame",
        {Prying.CODE_OBJECTS},
    ),
    "inspect.stack": ("import inspect\ninspect.stack(0)", {Prying.FRAMES}),
    "every object": ("import gc\nlen(gc.get_objects())", {Prying.OBJECTS}),
    "referrers": ("import gc\ngc.get_referrers(nn)", {Prying.OBJECTS}),
    "text": ("exec('a = 1')", {Prying.DYNAMIC_CODE}),
    "text by timeit": ("import timeit\ntimeit.timeit('1', number=1)", {Prying.DYNAMIC_CODE}),
    "text by code": ("import code\ncode.InteractiveInterpreter().runsource('1')", {Prying.DYNAMIC_CODE}),
    "text in annotations": (
        "import typing\ntyping.get_type_hints(type('A', (), {'__annotations__': {'a': 'int'}}))",
        {Prying.DYNAMIC_CODE},
    ),
    "text in a signature": (
        "import inspect\ndef own(x: '1 + 1'): pass\ninspect.signature(own, eval_str=True)",
        {Prying.DYNAMIC_CODE},
    ),
    "a function of code": (
        "import types\ntypes.FunctionType((lambda: 1).__code__, {})",
        {Prying.CODE_OBJECTS},
    ),
    "marshal": ("import marshal\nmarshal.loads(marshal.dumps(1))", {Prying.CODE_OBJECTS}),
    "pickles": ("import pickle\npickle.loads(b'cos\\ngetpid\\n.')", {Prying.UNPICKLING}),
    "library source": ("open(nn.__file__).close()", {Prying.LIBRARY_SOURCE}),
    "library source by inspect": ("import inspect\ninspect.getsource(nn.Linear)", {Prying.LIBRARY_SOURCE}),
    "library source by pathlib": (
        "import pathlib\npathlib.Path(nn.__file__).read_text()",
        {Prying.LIBRARY_SOURCE},
    ),
    "its own memory": (
        "try: open('/proc/self/mem').close()\nexcept OSError: pass",
        {Prying.MEMORY},
    ),
    "native code": ("import ctypes\nctypes.CDLL(None).getpid()", {Prying.MEMORY}),
    "a hook of its own": (
        "import sys\nsys.addaudithook(lambda *a: None)",
        {Prying.FRAMES},
    ),
    "a second copy": (
        "import sys, importlib\nkept = sys.modules.pop('torch.nn.modules.activation')\n"
        "copy = importlib.import_module('torch.nn.modules.activation')\n"
        "sys.modules['torch.nn.modules.activation'] = kept\ncopy.MultiheadAttention(4, 2)",
        {Prying.SECOND_COPY},
    ),
}


@pytest.mark.parametrize("way", SEEN)
def test_what_could_hide_a_use_is_seen_before_it_happens(attention: Any, way: str) -> None:
    made, kinds = SEEN[way]
    worker = attention(made)
    built(worker)
    pried = worker.link.watch.watched.pried
    assert kinds <= {each.kind for each in pried}
    assert {each.stage for each in pried} == {"Attention"}


DISTURBED = {
    "another constructor": "nn.MultiheadAttention.__init__ = lambda self, *a: None",
    "another class": "nn.MultiheadAttention = nn.Identity",
    "another function": "F.scaled_dot_product_attention = lambda *a, **k: a[2]",
    "none at all": "del F.scaled_dot_product_attention",
    "its code": (
        "start = nn.MultiheadAttention.__init__\n"
        "start.__code__ = (lambda *a: None).__code__.replace(co_freevars=('__class__',))"
    ),
    "the answer": (
        "import sys\nservice = sys.modules['grader.worker.forbidden_watch']\n"
        "service.ForbiddenWatch.prove = lambda *a: None"
    ),
}


@pytest.mark.parametrize("way", DISTURBED)
def test_a_disturbed_watch_does_not_stand_a_trial(attention: Any, way: str) -> None:
    worker = attention(DISTURBED[way])
    built(worker)
    assert worker.link.watch.watched.unproven == ("Attention",)


def test_a_pipe_that_leads_elsewhere_ends_the_worker(attention: Any) -> None:
    """What cannot be told does not happen."""
    worker = attention("""
import os
for number in range(3, 20):
    try:
        kept = os.dup(number)
    except OSError:
        continue
    os.dup2(os.open(os.devnull, os.O_RDWR), number)
hidden(nn, 'Multihead')(4, 2)
""")
    with pytest.raises(WorkerFault, match="ended by itself with exit code 70"):
        built(worker)


def test_a_closed_pipe_raises_in_the_students_code(attention: Any) -> None:
    worker = attention(
        "import os\nkept = os.dup(4)\nos.close(4)\n"
        "try: self.inner = hidden(nn, 'Multihead')(4, 2)\nfinally: os.dup2(kept, 4)"
    )
    with pytest.raises((StudentRaised, WorkerFault)):
        built(worker)


HONEST = {
    "signature": "import inspect\ninspect.signature(nn.Linear.forward).parameters",
    "a traceback": "import traceback\ntry: 1 / 0\nexcept Exception: traceback.format_exc()",
    "a log": "import logging\nlogging.getLogger().info('made')",
    "a warning": "import warnings\nwarnings.warn('made')",
    "a data class": (
        "import dataclasses, typing\nOwn = dataclasses.make_dataclass('Own', ['a', ('b', 'int', 3)])\nOwn(1)"
    ),
    "annotations that are texts": (
        "import typing\nclass Own(typing.NamedTuple):\n    mean: 'tuple[float, ...]'\nOwn((1.0,))"
    ),
    "a named tuple": "import collections\ncollections.namedtuple('Own', 'a b')(1, 2)",
    "a copy": "import copy\ncopy.deepcopy(nn.Sequential(nn.Linear(2, 2), nn.GELU()))",
    "weights in memory": (
        "import io\nkept = io.BytesIO()\ntorch.save(nn.Linear(2, 2).state_dict(), kept)\nkept.seek(0)\n"
        "torch.load(kept)\nkept.seek(0)\ntorch.load(kept, weights_only=False)"
    ),
    "a plot": "from matplotlib import pyplot as plt\nplt.plot([1, 2])\nplt.close()",
    "a late import": "import json, einops, torchvision.transforms.v2\nfrom sklearn import metrics",
    "a file of its own": "import tempfile\nwith tempfile.TemporaryFile() as file: file.write(b'x')",
    "garbage": "import gc\ngc.collect()",
    "the number of an object": "len({id(p) for p in nn.Linear(2, 2).parameters()})",
    "JSON": "import json\njson.loads(json.dumps({'a': 1}))",
    "a table": "import pandas\npandas.DataFrame({'a': [1, 2]}).describe().to_string()",
    "a generator": "list(value for value in range(3))",
    "a decorator": (
        "import functools\n@functools.wraps(nn.Linear.forward)\ndef own(*a): return a\nself.own = own"
    ),
    "an optimizer": (
        "model = nn.Linear(2, 2)\noptimizer = torch.optim.AdamW(model.parameters())\n"
        "model(torch.ones(1, 2)).sum().backward()\noptimizer.step()"
    ),
}


@pytest.mark.parametrize("way", HONEST)
def test_honest_code_is_not_seen(attention: Any, way: str) -> None:
    worker = attention(HONEST[way])
    built(worker)
    found = worker.link.watch.watched
    assert (found.reached, found.pried, found.unproven) == ((), (), ())
