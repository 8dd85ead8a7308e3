"""Forbidden parts are seen however they are imported, and cost only where a graded name reaches them."""

import pytest

from grader.analysis.forbidden_uses import equivalents, matches


def uses(made):
    return {(use.name, use.reached_from) for use in made.forbidden}


BODY = "\nclass Attention:\n    def __init__(self):\n        self.inner = {}\n"


@pytest.mark.parametrize(
    ("imports", "expression", "name"),
    [
        ("import torch.nn as nn", "nn.MultiheadAttention(4, 2)", "torch.nn.MultiheadAttention"),
        ("from torch import nn", "nn.MultiheadAttention(4, 2)", "torch.nn.MultiheadAttention"),
        ("import torch", "torch.nn.MultiheadAttention(4, 2)", "torch.nn.MultiheadAttention"),
        ("from torch.nn import MultiheadAttention as M", "M(4, 2)", "torch.nn.MultiheadAttention"),
        ("from torch.nn import *", "MultiheadAttention(4, 2)", "torch.nn.MultiheadAttention"),
        (
            "from torch.nn.modules.activation import MultiheadAttention",
            "MultiheadAttention(4, 2)",
            "torch.nn.modules.activation.MultiheadAttention",
        ),
        (
            "from torch.nn import modules as m",
            "m.MultiheadAttention(4)",
            "torch.nn.modules.MultiheadAttention",
        ),
        ("from torch import nn", 'getattr(nn, "Multihead" + "Attention")(4)', "torch.nn.MultiheadAttention"),
        ("from torch import nn", 'getattr(nn, "noitnettAdaehitluM"[::-1])', "torch.nn.MultiheadAttention"),
        (
            "from torch import nn",
            'getattr(nn, "".join(["Multihead", "Attention"]))',
            "torch.nn.MultiheadAttention",
        ),
        ("from torch import nn", 'nn.__dict__["MultiheadAttention"](4)', "torch.nn.MultiheadAttention"),
        ("from torch import nn", 'vars(nn)["MultiheadAttention"](4)', "torch.nn.MultiheadAttention"),
        (
            "from torch import nn\nP = 'Multi'",
            'getattr(nn, f"{P}headAttention")',
            "torch.nn.MultiheadAttention",
        ),
        ("from torch import nn\nlayers = nn", "layers.MultiheadAttention(4)", "torch.nn.MultiheadAttention"),
        ("import importlib", 'importlib.import_module("tim" + "m").create_model("x")', "timm.create_model"),
        ("import importlib\nt = importlib.import_module('timm')", "t.create_model('x')", "timm.create_model"),
        ("", '__import__("timm").create_model("x")', "timm.create_model"),
        ("import sys", 'sys.modules["timm"]', "timm"),
        (
            "import timm",
            "timm.models.vision_transformer.Attention(4)",
            "timm.models.vision_transformer.Attention",
        ),
        ("from torchvision import models as m", "m.vit_b_16()", "torchvision.models.vit_b_16"),
        ("import torchvision", "torchvision.models.vit_b_16()", "torchvision.models.vit_b_16"),
        (
            "from torchvision.models import VisionTransformer",
            "VisionTransformer()",
            "torchvision.models.VisionTransformer",
        ),
        ("from torchvision import models", 'models.get_model("vit_b_16")', "torchvision.models.vit_b_16"),
        (
            "import torch.nn.functional as F",
            "F.scaled_dot_product_attention(1, 2, 3)",
            "torch.nn.functional.scaled_dot_product_attention",
        ),
        ("from torch import nn", "nn.TransformerEncoderLayer(4, 2)", "torch.nn.TransformerEncoderLayer"),
        ("import grader.kit", "grader.kit.layers", "grader.kit.layers"),
    ],
)
def test_a_use_in_a_graded_class_is_seen(analyzed, imports, expression, name):
    made = analyzed(imports + BODY.format(expression))
    assert (name, ("Attention",)) in uses(made)


def test_the_place_of_a_use_is_its_line(analyzed):
    made = analyzed("from torch import nn" + BODY.format("nn.MultiheadAttention(4)"))
    assert [str(use.place) for use in made.forbidden] == ["homework.py:4"]
    assert made.forbidden[0].rule == "torch.nn.MultiheadAttention"


@pytest.mark.parametrize(
    "source",
    [
        "import timm" + BODY.format("1"),
        "from torch.nn import MultiheadAttention" + BODY.format("1"),
        "import timm\npretrained = timm.create_model('vit')\nprint(pretrained)" + BODY.format("1"),
        "from torch import nn\ndef comparison():\n    return nn.Transformer()\nprint(comparison())"
        + BODY.format("1"),
        "import torchvision.models.vision_transformer" + BODY.format("torchvision.transforms.Resize(3)"),
        "from timm import *" + BODY.format("1"),
    ],
)
def test_what_no_graded_name_reaches_costs_nothing(analyzed, source):
    found = uses(analyzed(source))
    assert found and all(reached == () for _, reached in found)


@pytest.mark.parametrize(
    "source",
    [
        # through a helper, a base class, a decorator, a default, a value at top level, a blocked statement
        "from torch import nn\nclass Helper(nn.MultiheadAttention): pass" + BODY.format("Helper(4)"),
        "from torch import nn\nM = nn.MultiheadAttention" + BODY.format("M(4)"),
        "from torch import nn\nclass Attention(nn.MultiheadAttention): pass\n",
        "from torch import nn\ndef make(kind=nn.MultiheadAttention): return kind(4)" + BODY.format("make()"),
        "import timm\nbackbone = timm.create_model('vit')" + BODY.format("backbone"),
        "from torchvision.models import VisionTransformer as Attention\n",
        "import timm\nAttention = timm.models.Attention\n",
        "def late():\n    from torch.nn import MultiheadAttention as M\n    return M(4)"
        + BODY.format("late()"),
        "def late():\n    import torch\n    inner = torch.nn\n    return inner.MultiheadAttention(4)"
        + BODY.format("late()"),
    ],
)
def test_reach_goes_through_all_that_a_graded_name_uses(analyzed, source):
    assert any("Attention" in reached for _, reached in uses(analyzed(source)))


def test_names_that_only_look_alike_are_not_forbidden(analyzed):
    made = analyzed(
        """
from torch import nn
import torch
class Transformer(nn.Module):
    pass
class Attention(nn.Module):
    def forward(self, x, nn=None, timm=None):
        transformers = [x]
        transformers.append(Transformer())
        return nn.MultiheadAttention(timm.create_model(), transformers.index(1))
class ViT(nn.Module):
    def __init__(self):
        self.transformer = Transformer()
        self.vit_b_16 = nn.LayerNorm(3)
"""
    )
    assert made.forbidden == ()


def test_code_that_runs_text_is_noted_for_a_person(analyzed):
    made = analyzed(
        """
import base64
CODE = base64.b64decode("eA==")
def run(): exec(CODE)
class Attention:
    def forward(self, x): run()
def unused(): eval("1")
"""
    )
    assert [note for note in made.notes if "exec is used by Attention" in note.text]
    assert [note for note in made.notes if "base64.b64decode is used by Attention" in note.text]
    assert not [note for note in made.notes if "eval" in note.text]


def test_code_that_looks_into_the_running_program_is_noted_for_a_person(analyzed):
    made = analyzed(
        """
import gc, sys
class Attention:
    def forward(self, x):
        gc.collect()
        for thing in gc.get_objects(): pass
        sys._getframe()
        return self.kind.__subclasses__()
"""
    )
    for what in ("gc.get_objects", "sys._getframe", "__subclasses__"):
        assert [note for note in made.notes if f"{what} is used by Attention" in note.text]
    assert not [note for note in made.notes if "gc.collect" in note.text]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("torch.ops.aten._native_multi_head_attention.default", "torch.nn.MultiheadAttention"),
        ("torch._C._VariableFunctions._transformer_encoder_layer_fwd", "torch.nn.TransformerEncoderLayer"),
        ("torch.ops.aten.scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention"),
        ("torch._scaled_dot_product_attention_math", "torch.nn.functional.scaled_dot_product_attention"),
    ],
)
def test_the_inside_of_a_part_is_the_part(name, part):
    assert matches(name, part)
    assert not matches("torch.ops.aten.softmax", part)


def test_one_thing_has_several_homes():
    assert "torch.nn.Transformer" in equivalents("torch.nn.modules.transformer.Transformer")
    assert "torchvision.models.vision_transformer.vit_b_16" in equivalents("torchvision.models.vit_b_16")
    assert matches("torch.nn.modules.transformer.TransformerEncoder", "torch.nn.Transformer*")
    assert matches("timm.models.vit", "timm") and not matches("timmy", "timm")
