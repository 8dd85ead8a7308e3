"""Code that pries is pointed out however it is written; what an honest homework does is not."""

from fnmatch import fnmatchcase
from typing import Any

import pytest

from grader.analysis.reflection import ALLOWED, FLAGGED, homes, is_flagged
from grader.domain.analyzed_program import TRAINING

START = """
import torch
from torch import nn
import torch.nn.functional as F
{imports}
class Attention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        {code}
"""
MHA, CORE = "torch.nn.MultiheadAttention", "torch.nn.functional.scaled_dot_product_attention"


def source(imports: str, code: str) -> str:
    return START.format(imports=imports, code="\n        ".join(code.strip().split("\n")))


def looks(made: Any) -> list[str]:
    return [note.text for note in made.notes if note.ask_person]


# --- forbidden parts by other roads: they are seen as uses --------------------------------------------------

ROADS = {
    "a module that imports torch": ("", "F.torch.nn.MultiheadAttention(4, 2)", MHA),
    "its insides": ("", "F.torch._C._nn.scaled_dot_product_attention(1, 2, 3)", CORE),
    "a module that imports nn": (
        "import torchvision",
        "torchvision.models.resnet.nn.MultiheadAttention(4, 2)",
        MHA,
    ),
    "another library": ("import numpy as np", "np.core.torch.nn.MultiheadAttention(4, 2)", MHA),
    "a variant of it": ("", "torch.ao.nn.quantizable.MultiheadAttention(4, 2)", MHA),
    "the pattern of a fused kernel": (
        "",
        "torch._inductor.fx_passes.fuse_attention._sfdp_pattern_1(1, 2)",
        CORE,
    ),
    "the pattern, imported": (
        "from torch._inductor.fx_passes import fuse_attention as fused",
        "fused._sfdp_pattern_1(1, 2)",
        CORE,
    ),
    "a class pattern": ("", "match nn:\n    case object(MultiheadAttention=M):\n        M(4, 2)", MHA),
    "a pattern in a pattern": (
        "",
        "match torch:\n    case object(nn=object(MultiheadAttention=M)):\n        M(4, 2)",
        MHA,
    ),
    "attrgetter": ("import operator", "operator.attrgetter('MultiheadAttention')(nn)(4, 2)", MHA),
    "attrgetter of a path": (
        "from operator import attrgetter",
        "attrgetter('nn.MultiheadAttention')(torch)",
        MHA,
    ),
    "methodcaller": (
        "from operator import methodcaller",
        "methodcaller('MultiheadAttention', 4, 2)(nn)",
        MHA,
    ),
    "a class's name for it": (
        "class Base:\n    KIND = 'MultiheadAttention'",
        "getattr(nn, Base.KIND)(4, 2)",
        MHA,
    ),
    "getattr_static": ("import inspect", "inspect.getattr_static(nn, 'MultiheadAttention')", MHA),
    "resolve_name": ("import pkgutil", "pkgutil.resolve_name('torch.nn:MultiheadAttention')", MHA),
    "locate": ("import pydoc", "pydoc.locate('torch.nn.MultiheadAttention')(4, 2)", MHA),
    "vars, get": ("", "vars(nn).get('MultiheadAttention')(4, 2)", MHA),
    "__dict__, get": ("", "nn.__dict__.get('MultiheadAttention')(4, 2)", MHA),
    "__getattribute__": ("", "nn.__getattribute__('MultiheadAttention')(4, 2)", MHA),
    "one of a few names": ("", "for n in ['Linear', 'MultiheadAttention']:\n    getattr(nn, n)(4, 2)", MHA),
    "one of a few, comprehended": ("", "[getattr(nn, n) for n in ('GELU', 'MultiheadAttention')]", MHA),
    "names side by side": ("", "m, k = nn, 1\nm.MultiheadAttention(4, 2)", MHA),
    "names side by side, at top level": ("m, k = nn, 1", "m.MultiheadAttention(4, 2)", MHA),
    "an assignment in passing": ("", "(m := nn).MultiheadAttention(4, 2)", MHA),
    "globals": ("M = nn.MultiheadAttention", "globals()['M'](4, 2)", MHA),
}


@pytest.mark.parametrize("road", ROADS)
def test_a_forbidden_part_is_seen_by_every_road(analyzed: Any, road: str) -> None:
    imports, code, rule = ROADS[road]
    made = analyzed(source(imports, code))
    assert ("Attention",) in {use.reached_from for use in made.forbidden if use.rule == rule}


# --- what pries is pointed out ------------------------------------------------------------------------------

PRYING = {
    "frames by a class pattern": (
        "import types",
        "match dim:\n    case types.FrameType(f_back=b, f_locals=l): pass",
    ),
    "frames by walk_stack": ("import traceback", "list(traceback.walk_stack(None))"),
    "frames by inspect": ("import inspect as i", "i.trace()"),
    "frames by a generator": ("", "(x for x in ()).gi_frame"),
    "frames by a name for the module": ("import sys\ns = sys", "s._getframe()"),
    "frames by a module of another": ("import logging", "logging.sys._getframe()"),
    "frames by a private module of another": ("import random", "[random][0]._os"),
    "closures": ("import inspect", "inspect.getclosurevars(F.relu)"),
    "cells": ("", "F.relu.__closure__"),
    "unwrap": ("from inspect import unwrap", "unwrap(F.relu)"),
    "a wrapped function": ("", "F.relu.__wrapped__"),
    "a method's object": ("", "dim.hook.__self__"),
    "globals of a function": ("", "F.relu.__globals__['torch']"),
    "globals by getattr": ("", "getattr(F.relu, '__glo' + 'bals__')"),
    "code": ("", "F.relu.__code__"),
    "code that is set": ("", "F.relu.__code__ = None"),
    "subclasses": ("", "nn.Module.__subclasses__()"),
    "bases": ("", "type(self).__mro__"),
    "a name that is computed": ("", "getattr(dim, heads)"),
    "a name within a module": ("", "getattr(nn, heads)"),
    "a name by a function": ("", "(lambda o, n: getattr(o, n))(dim, heads)"),
    "getattr by another name": ("", "g = getattr\ng(dim, heads)"),
    "getattr handed on": ("from functools import partial", "partial(getattr, dim)(heads)"),
    "attrgetter": ("from operator import attrgetter", "attrgetter(heads)(dim)"),
    "attrgetter by another name": ("from operator import attrgetter as a", "a('nn.Linear')(torch)"),
    "import_module": ("import importlib", "importlib.import_module('to' + dim)"),
    "__import__": ("", "list(map(__import__, [dim]))"),
    "reload": ("import importlib", "importlib.reload(dim)"),
    "modules": ("import sys", "sys.modules[dim]"),
    "finders": ("import sys", "sys.meta_path.insert(0, self)"),
    "names of the program": ("", "globals()['n' + dim]"),
    "all names of the program": ("", "[v for v in globals().values()]"),
    "vars of a module": ("", "vars(nn)[dim]"),
    "vars handed on": ("", "list(map(vars, [dim]))"),
    "names of a module": ("", "[v for k, v in nn.__dict__.items() if k.startswith('Multi')]"),
    "a list of names of a module": ("", "dir(nn)"),
    "a module in a list": ("", "[nn][0].MultiheadAttention(4, 2)"),
    "a module as an attribute": ("", "self.lib = nn"),
    "a module in a class": ("class C:\n    lib = nn", "vars(C.lib)"),
    "a module by default": ("def lib(m=nn): return m", "lib()"),
    "a module that is returned": ("def lib(): return nn", "lib()"),
    "a module by import_module": ("import importlib", "vars(importlib.import_module('torch.nn'))"),
    "a module in a format": ("", "'{0.nn}'.format(torch)"),
    "Formatter": ("import string", "string.Formatter().get_field('0.nn', (dim,), {})"),
    "builtins": ("import builtins", "builtins.__dict__['ex' + 'ec'](dim)"),
    "__builtins__": ("", "__builtins__['eval']('1')"),
    "exec by another name": ("run = exec", "run('x')"),
    "exec handed on": ("", "list(map(exec, ['x']))"),
    "timeit": ("import timeit", "timeit.timeit('x')"),
    "a benchmark": ("from torch.utils.benchmark import Timer", "Timer('x').timeit()"),
    "runsource": ("import code", "code.InteractiveInterpreter().runsource('x')"),
    "codeop": ("from codeop import compile_command as c", "c('x')"),
    "a signature": ("import inspect", "inspect.signature(self, eval_str=True)"),
    "an item of traitlets": ("from traitlets import import_item", "import_item('sk' + str(dim))"),
    "annotations": ("import typing", "typing.get_type_hints(self)"),
    "TorchScript": ("", "torch.jit.CompilationUnit('def f(x): return x')"),
    "fx": ("from torch import fx", "fx.symbolic_trace(self)"),
    "pandas": ("import pandas as pd", "pd.eval('@nn.MultiheadAttention')"),
    "a data frame": ("import pandas as pd", "pd.DataFrame().eval('@nn.MultiheadAttention')"),
    "IPython": ("", "get_ipython().run_cell('x')"),
    "pickles": ("import pickle", "pickle.loads(dim)"),
    "an unpickler": ("from pickle import Unpickler", "Unpickler(dim).load()"),
    "copyreg": ("import copyreg", "copyreg.pickle(dim, heads)"),
    "__reduce__": ("", "class P:\n    def __reduce__(self): return (nn.Linear, (1, 2))"),
    "marshal": ("import marshal", "marshal.loads(dim)"),
    "a function by hand": ("import types", "types.FunctionType(dim, {})"),
    "code by hand": ("from types import CodeType as C", "C(1)"),
    "source": ("import inspect", "inspect.getsource(nn.Linear)"),
    "a library's file": ("", "open(torch.__file__)"),
    "mocks": ("from unittest import mock", "mock.patch('torch.nn.Linear')"),
    "a logger's classes": ("import logging.config", "logging.config.dictConfig({})"),
    "a hub": ("", "torch.hub.load('.', 'x', source='local')"),
    "native code": ("from ctypes import CDLL", "CDLL(None)"),
    "descriptors": ("import os", "os.dup2(3, 4)"),
    "private modules": ("", "torch._dynamo.eval_frame.set_eval_frame(None)"),
    "a name that changes": (
        "class Base:\n    KIND = 'GELU'\nBase.KIND = input()",
        "getattr(nn, Base.KIND)()",
    ),
    "a name that may change": (
        "class Base:\n    KIND = 'GELU'\nsetattr(Base, input(), input())",
        "getattr(nn, Base.KIND)()",
    ),
    "one of two names": (
        "class One:\n    KIND = 'GELU'\nclass Two:\n    KIND = 'ReLU'",
        "getattr(nn, One.KIND)()",
    ),
    "a replaced function": ("", "F.softmax = None"),
    "a replaced class": ("", "setattr(nn, 'Linear', dim)"),
    "everything of inspect": ("from inspect import *", "currentframe()"),
    "everything of gc": ("from gc import *", "get_objects()"),
}


@pytest.mark.parametrize("way", PRYING)
def test_what_pries_is_pointed_out(analyzed: Any, way: str) -> None:
    imports, code = PRYING[way]
    assert looks(analyzed(source(imports, code)))


@pytest.mark.parametrize(
    "text",
    [
        "import gc\nclass Unused:\n    found = gc.get_objects()",
        "import gc\ndef go(): return gc.get_objects()\nclass Unused:\n    found = go()",
        "import gc\n@gc.get_objects\ndef unused(): pass",
        "import gc\ndef unused(found=gc.get_objects()): pass",
    ],
    ids=["a class's body", "a function that it calls", "a decorator", "a default"],
)
def test_what_loading_executes_counts_too(analyzed: Any, text: str) -> None:
    [note] = looks(analyzed(f"{text}\nclass Attention: pass"))
    assert "gc.get_objects is used by the loading" in note


def test_what_nothing_executes_does_not_count(analyzed: Any) -> None:
    made = analyzed(
        "import gc\ndef unused(): return gc.get_objects()\nprint(unused())\nclass Attention: pass"
    )
    assert not looks(made)


# --- the training ------------------------------------------------------------------------------------------

TRAINED = """
import gc
import torchvision
from torch import nn, optim
from torchvision import transforms

class ViT(nn.Module):
    pass

def train_epoch(model, optimizer, data_loader, loss_history):
    pass

def finished(model):
    {helper}
    return model

def comparison():
    return torchvision.models.vit_b_16()

transform = {transform}
model = ViT()
optimizer = optim.Adam({optimizer})
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, [])
    {loop}
print(comparison())
"""
PLAIN = {
    "helper": "pass",
    "transform": "transforms.Compose([transforms.Resize(28), transforms.ToTensor()])",
    "optimizer": "model.parameters()",
    "loop": "pass",
}
VIT = "torchvision.models.vit_b_16()"


PARTS = {
    "loop": "model = {}",
    "helper": "model = {}",
    "transform": "transforms.Compose([transforms.Resize(28), transforms.Lambda(lambda x: {}(x))])",
    "optimizer": "{}.parameters()",
}


@pytest.mark.parametrize("where", PARTS)
def test_what_the_training_uses_is_the_trainings(analyzed: Any, where: str) -> None:
    called = {"loop": "model = finished(model)"} if where == "helper" else {}

    def with_code(code: str) -> Any:
        return analyzed(TRAINED.format(**{**PLAIN, **called, where: PARTS[where].format(code)}))

    uses = [use for use in with_code("torchvision.models.vit_b_16()").forbidden if use.reached_from]
    assert {use.reached_from for use in uses} == {(TRAINING,)}
    notes = looks(with_code("gc.get_objects()"))
    assert notes and all("gc.get_objects is used by the training" in note for note in notes)


def test_a_comparison_that_training_does_not_reach_costs_nothing(analyzed: Any) -> None:
    made = analyzed(TRAINED.format(**PLAIN))
    assert {use.reached_from for use in made.forbidden} == {()}
    assert not looks(made)


def test_what_a_graded_name_uses_is_not_the_trainings_alone(analyzed: Any) -> None:
    made = analyzed(
        TRAINED.format(**PLAIN).replace("    pass\n\ndef train", "    part = nn.Transformer\n\ndef train")
    )
    assert {use.reached_from for use in made.forbidden if use.name == "torch.nn.Transformer"} == {("ViT",)}


# --- what an honest homework does ---------------------------------------------------------------------------

HONEST = {
    "own name": ("", "print(self.__class__.__name__, type(self).__name__, self.__module__)"),
    "attributes by known names": (
        "",
        "getattr(self, 'heads', 8), hasattr(nn, 'RMSNorm'), getattr(nn, 'GELU')()",
    ),
    "an optimizer by its name": ("NAME = 'AdamW'", "getattr(torch.optim, NAME)"),
    "own attributes by numbers": (
        "",
        "setattr(self, f'block{dim}', nn.Linear(1, 1))\ngetattr(self, f'block{dim}')",
    ),
    "others' attributes by numbers": ("", "getattr(dim.encoder, f'layer_{heads}')"),
    "some names in turn": ("", "for name in ('query', 'key'):\n    getattr(dim, name).weight"),
    "a configuration": ("", "for name, value in vars(dim).items():\n    setattr(self, name, value)"),
    "arguments": ("import argparse", "args = argparse.Namespace(a=1)\nprint(vars(args), args.__dict__['a'])"),
    "own dictionary": ("", "self.__dict__.update(dim=dim)\nself.__dict__['heads']"),
    "local variables": ("", "print(locals())\n'{dim}'.format(**locals())"),
    "a known global": ("", "if 'SIZE' in globals():\n    globals()['SIZE']"),
    "on Colab": ("import sys", "if 'google.colab' in sys.modules: pass"),
    "versions": (
        "import numpy as np, sys",
        "print(torch.__version__, np.__version__, sys.version, sys.argv)",
    ),
    "a compiler": ("", "if hasattr(torch, 'compile'):\n    self.f = torch.compile(self.f)"),
    "evaluation mode": ("", "dim.eval()\nself.query = nn.Linear(1, 1)\nself.query(dim)"),
    "a query": ("", "dim.query('label == 1')"),
    "a signature": ("import inspect", "inspect.signature(self.forward).parameters\ninspect.isclass(dim)"),
    "a function type": ("import types", "isinstance(dim, types.FunctionType)\ntypes.SimpleNamespace(a=1)"),
    "garbage": ("import gc", "gc.collect()"),
    "a timer": ("import timeit", "timeit.default_timer()"),
    "a traceback": ("import traceback", "try: pass\nexcept Exception: traceback.print_exc()"),
    "a literal": ("import ast", "ast.literal_eval('[1]')"),
    "weights": (
        "import io",
        "torch.save(self.state_dict(), 'a')\ntorch.load('a', weights_only=False)\nio.BytesIO()",
    ),
    "a history in a file": ("import pickle", "pickle.dump([1], open('a', 'wb'))"),
    "a package": ("import importlib.util", "importlib.util.find_spec('einops')"),
    "a module by its name": ("import importlib", "np = importlib.import_module('numpy')\nnp.array(1)"),
    "a copy": ("import copy", "copy.deepcopy(self)"),
    "decorators": (
        "import functools",
        "@functools.wraps(self.forward)\ndef f(): pass\nfunctools.partial(f, 1)",
    ),
    "data classes": ("from dataclasses import dataclass\n@dataclass\nclass C:\n    a: int = 1", "C()"),
    "named tuples": ("from collections import namedtuple\nC = namedtuple('C', 'a b')", "C(1, 2)"),
    "types": ("from typing import Any, Optional\nx: Optional[int] = None", "y: 'Optional[nn.Module]' = None"),
    "a wrapper": (
        "class Wrapper(nn.Module):\n    def __getattr__(self, name):\n"
        "        try: return super().__getattr__(name)\n"
        "        except AttributeError: return getattr(self.module, name)",
        "Wrapper()",
    ),
    "settings": ("", "torch.backends.cudnn.benchmark = True\ntorch.backends.cudnn.deterministic = True"),
    "base classes": ("", "isinstance(dim, nn.modules.batchnorm._BatchNorm)\nnn.init._no_grad_trunc_normal_"),
    "a schedule": (
        "from torch.optim.lr_scheduler import _LRScheduler\nclass S(_LRScheduler): pass",
        "S(dim)",
    ),
    "collate": ("from torch.utils.data._utils.collate import default_collate", "default_collate([dim])"),
    "other names for modules": (
        "layers = nn\nL = torch.nn",
        "m = torch.nn\nm.Linear(1, 1), L.GELU(), layers.GELU()",
    ),
    "paths": (
        "import os\nfrom pathlib import Path",
        "Path(__file__).parent\nos.path.join('a', 'b')\nos.environ.get('A')",
    ),
    "a global called like a module": (
        "test = [1]\ncode = {'a': 1}\ntypes = ['a']",
        "test.index(1), code.get('a'), types[0]",
    ),
    "own methods called like Python's": ("", "self.inspect = self.compile = None\ndim.eval()\ndim.compile()"),
    "a function of one's own called compile": ("def compile(x): return x", "compile(dim)"),
    "the warnings": (
        "import warnings, logging",
        "warnings.filterwarnings('ignore')\nlogging.getLogger(__name__)",
    ),
    "an error's name": (
        "",
        "try: pass\nexcept Exception as e: print(type(e).__name__, e.__class__.__name__)",
    ),
    "an activation by a class's name for it": (
        "class Base(nn.Module):\n    ACTIVATION = 'GELU'\n"
        "class Blocks(nn.Module):\n    def __init__(self):\n        setattr(self, f'block_{1}', Base())",
        "getattr(nn, Base.ACTIVATION)()",
    ),
    "what is compiled": ("", "whole = dim\nwhole = getattr(whole, '_orig_mod', whole)"),
    "a match": ("", "match heads:\n    case int(): pass\n    case {'a': b}: pass\n    case [c, *d]: pass"),
    "a match of one's own": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int",
        "match dim:\n    case P(x=1): pass",
    ),
}


@pytest.mark.parametrize("way", HONEST)
def test_honest_code_is_not_pointed_out(analyzed: Any, way: str) -> None:
    imports, code = HONEST[way]
    made = analyzed(source(imports, code))
    assert looks(made) == []
    assert not [use for use in made.forbidden if use.reached_from]


# --- the tables ---------------------------------------------------------------------------------------------


def test_what_is_allowed_is_a_part_of_what_is_flagged() -> None:
    """A line that allows what nothing forbids says nothing."""
    for allowed in ALLOWED:
        assert any(fnmatchcase(allowed.rstrip("*"), pattern) for pattern in FLAGGED), allowed


def test_a_name_is_followed_through_the_modules_on_its_way() -> None:
    assert "sys.modules" in homes("torch.nn.functional.torch.sys.modules")
    assert "os.dup2" in homes("random._os.dup2")
    assert is_flagged("torch.nn.functional.sys._getframe") and not is_flagged("torch.nn.functional.softmax")
