"""What is kept of a source, what is left out and why, and what stays unresolved."""

import sys

import pytest

SKELETON = """
import torch
from torch import nn

class Attention(nn.Module):
    def forward(self, x):
        return x

class ViT(nn.Module):
    def forward(self, img):
        return img
"""


def kinds(made):
    return {name: statement.kind for statement in made.statements for name in statement.binds}


def reasons(made):
    return {omission.first_line: omission.reason for omission in made.omissions}


def test_definitions_imports_and_constants_are_kept_and_the_rest_is_listed(analyzed):
    made = analyzed(
        SKELETON
        + """
SIZE = 28
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)
print("hello")
import matplotlib.pyplot as plt
plt.figure()
model = ViT()
open("log.txt", "w").write("x")
import os
os.system("unzip dataset.zip")
"""
    )
    assert kinds(made) == {
        **dict.fromkeys(["torch", "nn", "plt", "os"], "import"),
        **dict.fromkeys(["Attention", "ViT"], "definition"),
        **dict.fromkeys(["SIZE", "device"], "constant"),
    }
    found = reasons(made)
    assert "seed" in found["torch.manual_seed(42)"]
    assert "prints" in found['print("hello")']
    assert "draws" in found["plt.figure()"]
    assert "model" in found["model = ViT()"]
    assert "files" in found['open("log.txt", "w").write("x")']
    assert "another program" in found['os.system("unzip dataset.zip")']
    assert str(made.defined["ViT"]) == "homework.py:9"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="new in Python 3.12")
def test_names_of_types_are_kept_with_their_parameters(analyzed):
    made = analyzed(
        SKELETON
        + """
type Pair[T] = tuple[T, Size]
type Size = int

class Head[T: nn.Module](nn.Module):
    def split(self, x: T, of: Pair[T]) -> Size: ...
"""
    )
    assert {"Pair", "Size", "Head"} <= set(kinds(made))
    assert reasons(made) == {}


def test_what_graded_functions_need_is_kept_transitively(analyzed, loaded):
    made = analyzed(
        SKELETON
        + """
class Smoothing(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.share = share

def share_of(config):
    return config["share"]

CONFIG = {"share": 0.1}
CONFIG["share"] = 0.2
CONFIG.update(extra=1)
unrelated = share_of({"share": 3})
criterion = Smoothing(share_of(CONFIG))

def step(x):
    return criterion(x)

def train_epoch(model, optimizer, data_loader, loss_history):
    return step(1)
"""
    )
    assert kinds(made)["criterion"] == "needed"
    assert "unrelated" not in kinds(made)
    assert reasons(made)['unrelated = share_of({"share": 3})'] == "nothing that is graded needs it"
    assert made.unresolved == ()
    assert loaded(made)["criterion"].share == 0.2


def test_argparse_is_needed_with_its_options_and_defaults(analyzed, loaded):
    made = analyzed(
        SKELETON
        + """
import argparse
parser = argparse.ArgumentParser()
group = parser.add_argument_group("training")
group.add_argument("--smoothing", type=float, default=0.1)
parser.add_argument("--lr", default=1e-3)
args = parser.parse_args()

def train_epoch(model, optimizer, data_loader, loss_history):
    return args.smoothing, args.lr
"""
    )
    assert loaded(made)["train_epoch"](0, 0, 0, 0) == (0.1, 1e-3)
    assert any("parse_args([])" in note.text for note in made.notes)


def test_a_name_that_nothing_defines_is_unresolved_for_each_graded_name(analyzed):
    made = analyzed(
        SKELETON
        + """
def helper():
    return criterion

def train_epoch(model, optimizer, data_loader, loss_history):
    return helper() + learning_rate

def evaluate(model, data_loader, loss_history):
    return [name for name in range(3)] + [len(loss_history)] + [__name__]
"""
    )
    assert made.unresolved == (("train_epoch", "criterion"), ("train_epoch", "learning_rate"))


def test_what_only_a_file_defines_is_unresolved(analyzed):
    made = analyzed(
        SKELETON
        + """
import json
config = json.load(open("config.json"))
rate = config["lr"]

def train_epoch(model, optimizer, data_loader, loss_history):
    return rate
"""
    )
    assert made.unresolved == (("train_epoch", "rate"),)
    assert reasons(made)['rate = config["lr"]'] == "it needs `config`, which is not executed"


def test_names_bound_by_role_are_not_executed(analyzed):
    made = analyzed(
        SKELETON
        + """
from torch import optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
data = ImageFolder("data/train")
held_out = ImageFolder("data/test")
first = DataLoader(data, batch_size=32, shuffle=True)
second = DataLoader(held_out, batch_size=32)
names = data.classes
count = len(names)
net = nn.DataParallel(ViT()).to("cpu")
opt = optim.Adam(net.parameters())
sched = StepLR(opt, 10)
for epoch in range(3):
    train_epoch(net, opt, first, [])

def train_epoch(model, optimizer, data_loader, loss_history):
    sched.step()
    print(epoch, len(first), opt, net)

def evaluate(model, data_loader, loss_history):
    print(names, len(held_out), second, count)
"""
    )
    assert made.roles == {
        "sched": "scheduler",
        "epoch": "epoch",
        "first": "train_loader",
        "opt": "optimizer",
        "net": "model",
        "names": "class_names",
        "count": "num_classes",
        "held_out": "test_dataset",
        "second": "test_loader",
    }
    assert made.unresolved == ()


def test_names_of_an_opaque_call_have_the_role_that_they_say(analyzed):
    made = analyzed(
        SKELETON
        + """
from torch.utils.data import DataLoader

def loaders(size):
    return DataLoader([], size), DataLoader([], size), ["a"]

train_loader, val_loader, class_names = loaders(32)

def evaluate(model, data_loader, loss_history):
    return len(train_loader), val_loader, class_names
"""
    )
    assert made.roles == {
        "train_loader": "train_loader",
        "val_loader": "test_loader",
        "class_names": "class_names",
    }


def test_a_list_of_class_names_is_a_constant_not_a_role(analyzed, loaded):
    made = analyzed(
        SKELETON
        + """
class_names = ["crazing", "inclusion"]

def evaluate(model, data_loader, loss_history):
    return class_names
"""
    )
    assert made.roles == {}
    assert loaded(made)["evaluate"](0, 0, 0) == ["crazing", "inclusion"]


def test_definitions_under_the_main_guard_count_as_top_level(analyzed, loaded):
    made = analyzed(
        '''
if __name__ == "__main__":
    import math

    TEXT = """two
      lines"""

    @staticmethod
    def evaluate(model, data_loader, loss_history):
        """
        A docstring.
        """
        return math.floor(2.5), TEXT

    print(evaluate(0, 0, 0))
'''
    )
    assert str(made.defined["evaluate"]) == "homework.py:9"
    statement = next(s for s in made.statements if "evaluate" in s.binds)
    assert statement.source.startswith("@staticmethod\ndef evaluate") and statement.place.line == 8
    assert loaded(made)["evaluate"](0, 0, 0) == (2, "two\n      lines")


def test_blocks_keep_their_imports_and_lose_their_shell_commands(analyzed, loaded):
    made = analyzed(
        """
import os, sys
try:
    import einops
except ImportError:
    os.system(
        "pip install einops"
    ); import math
if "google.colab" in sys.modules:
    from google.colab import drive
    drive.mount("/content/drive")
else:
    ROOT = "."

def evaluate(model, data_loader, loss_history):
    return ROOT
"""
    )
    assert loaded(made)["evaluate"](0, 0, 0) == "."
    source = next(s.source for s in made.statements if "einops" in s.binds)
    assert "pip" not in source and source.count("\n") == 5
    assert "another program" in reasons(made)["os.system('pip install einops')"]
    assert any("drive.mount" in line for line in reasons(made))


def test_statements_on_one_line_are_told_apart(analyzed):
    made = analyzed("import math; A = 1; print(A)\ndef evaluate(m, d, h): return A\n")
    assert [statement.source for statement in made.statements] == [
        "import math",
        "A = 1",
        "def evaluate(m, d, h): return A",
    ]


def test_the_last_of_several_definitions_wins_and_all_are_kept(analyzed, loaded):
    made = analyzed("def evaluate(m, d, h): return 1\n\ndef evaluate(m, d, h): return 2\n")
    assert loaded(made)["evaluate"](0, 0, 0) == 2
    assert made.defined["evaluate"].line == 3


MADE = """
def make_train_epoch(loss_of):
    def train_epoch(model, optimizer, data_loader, loss_history):
        for images, labels in data_loader:
            loss_of(model(images), labels).backward()
            optimizer.step()
    return train_epoch

train_epoch = make_train_epoch(F.cross_entropy)
"""
CALLED = """
def trained(loss_of):
    def train_epoch():
        loss_of(1).backward()
    train_epoch()
    return train_epoch

train_epoch = trained(abs)
"""


def test_a_function_that_is_made_and_given_back_is_not_called(analyzed, loaded):
    """Making a train_epoch is no training, unless it is called where it is made."""
    made = analyzed("from torch.nn import functional as F\n" + MADE)
    assert callable(loaded(made)["train_epoch"]) and not made.omissions
    called = analyzed(CALLED)
    assert "train_epoch" not in [name for each in called.statements for name in each.binds]
    later = analyzed(
        "from torch.nn import functional as F\n" + MADE.replace("train_epoch =", "run =") + "run()\n"
    )
    [left_out] = [each for each in later.omissions if each.first_line == "run()"]
    assert "it trains" in left_out.reason


@pytest.mark.parametrize(
    "used",
    [
        "CLASSES = make_trainer(10)(None)",
        "run, other = make_trainer(10), 3\nCLASSES = run(None)",
        "run = make_trainer(10)\ngo = make_trainer(5)(None)\nCLASSES = run(None)",
        "@make_trainer(10)\ndef CLASSES(x): return x",
    ],
)
def test_a_function_that_is_made_and_called_in_another_way_is_called(analyzed, used):
    text = """
def make_trainer(count):
    def run(model):
        for _ in range(count):
            model.loss().backward()
    return run

{}

class Attention:
    classes = CLASSES
"""
    kept = [name for each in analyzed(text.format(used)).statements for name in each.binds]
    assert "CLASSES" not in kept and "Attention" in kept


def test_a_query_of_tables_in_memory_reads_no_file(analyzed):
    """Unlike `pandas.read_csv` and its like."""
    text = "import pandas as pd\nasked = pd.{}('a', None)\nclass Attention:\n    kept = asked\n"
    kept = {
        name: [bound for each in analyzed(text.format(name)).statements for bound in each.binds]
        for name in ("read_sql", "read_sql_query", "read_csv", "read_stata", "read_table")
    }
    assert {name for name, bound in kept.items() if "asked" in bound} == {"read_sql", "read_sql_query"}


def test_nothing_is_computed_from_a_list_that_only_a_training_fills(analyzed, loaded):
    """The best of no results is an error, which is nobody's fault; what a graded part needs stays."""
    made = analyzed(
        SKELETON
        + """
sizes, results = [], []
sizes.append(8)
widest = max(sizes)
for rate in (0.1, 0.01):
    results.append(train_epoch(ViT(), rate))
best = max(results, key=lambda result: result["accuracy"])
"""
    )
    assert "best" not in kinds(made) and kinds(made)["results"] == "constant"
    assert loaded(made)["widest"] == 8


def test_a_helper_that_cannot_be_defined_is_left_out_and_costs_nothing(analyzed, loaded):
    made = analyzed(
        """
model = open("x")
def unused(batch=len(model)):
    pass
def evaluate(m, d, h): return 1
"""
    )
    assert "unused" not in loaded(made)
    assert reasons(made)["def unused(batch=len(model)):"] == "it needs `model`, which is not executed"


def test_a_helper_uses_its_decorator_before_anything_is_called(analyzed, loaded):
    made = analyzed(
        """
import functools
REGISTRY = make_registry = dict()
def timed(function):
    REGISTRY[function.__name__] = True
    @functools.wraps(function)
    def inner(*args): return function(*args)
    return inner
@timed
def helper(): return 1
def evaluate(m, d, h): return 1
"""
    )
    assert loaded(made)["REGISTRY"] == {"helper": True}


def test_star_imports_may_define_what_nothing_else_does(analyzed):
    made = analyzed("from torch import *\ndef evaluate(m, d, h): return zeros(3)\n")
    assert made.unresolved == ()


def test_annotations_are_needed_when_the_function_is_defined(analyzed):
    source = "def evaluate(model: Network, d, h): return 1\n"
    assert analyzed(source).unresolved == (("evaluate", "Network"),)
    assert analyzed("from __future__ import annotations\n" + source).unresolved == ()


def test_scopes_follow_python(analyzed):
    made = analyzed(
        """
class ViT:
    width = 3
    heights = [width_of for width_of in range(width)]
    def forward(self, img):
        def inner():
            return outer_value + width
        outer_value = 1
        try:
            pass
        except ValueError as problem:
            print(problem)
        with img as opened:
            pass
        if (found := img) and (lambda key: key)(1):
            return inner(), found, opened, {k: v for k, v in img}
        import json
        for a, (b, *c) in img:
            json.dumps([a, b, c])
        global counted
        counted = 1
"""
    )
    assert made.unresolved == (("ViT", "width"),)


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("class VIT: pass", "ViT", "VIT"),
        ("class Vit_: pass", "ViT", "Vit_"),
        ("class Atention: pass", "Attention", "Atention"),
        ("def trainEpoch(a, b, c, d): pass", "train_epoch", "trainEpoch"),
        ("def train_epochs(a, b, c, d): pass", "train_epoch", "train_epochs"),
    ],
)
def test_a_name_that_is_nearly_right_is_found(analyzed, loaded, name, kind, found):
    made = analyzed("X = 1\n" + name)
    assert [(near.expected, near.found, near.place.line) for near in made.near_names] == [(kind, found, 2)]
    assert made.defined[kind].line == 2 and found in loaded(made)


@pytest.mark.parametrize(
    "source", ["class Net: pass", "def ViTs(): pass", "class ViT: pass\nclass VIT: pass"]
)
def test_other_names_are_not_taken_for_graded_ones(analyzed, source):
    assert analyzed(source).near_names == ()


def test_what_nearly_right_names_need_is_kept(analyzed):
    made = analyzed("import json\nloss = json.JSONEncoder()\ndef Evaluate(m, d, h): return loss, missing\n")
    assert kinds(made)["loss"] == "needed"
    assert made.unresolved == (("evaluate", "missing"),)


def test_an_alias_counts_as_the_graded_name(analyzed):
    made = analyzed("class VisionTransformer: pass\nViT = VisionTransformer\n")
    assert made.near_names == () and made.defined["ViT"].line == 2


def test_a_method_put_on_a_graded_class_is_kept(analyzed, loaded):
    made = analyzed("class ViT: pass\ndef forward(self, x): return x\nViT.forward = forward\n")
    assert loaded(made)["ViT"]().forward(3) == 3


def test_what_is_left_out_under_the_main_guard_leaves_the_rest_as_it_is(analyzed):
    """Its statements are dedented: columns in the file are none in them, and letters may take two bytes."""
    text = """
if __name__ == "__main__":
    if not ROOT:
        ROOT = "é"; zipfile.ZipFile("dataset.zip").extractall("unzipped"); NAME = "übung"
        for directory in folders:
            try:
                os.link(directory, directory)
            except OSError:
                SIZE = 28
                directory.write_bytes(b"")
    if SEARCH:
        grid = {"lr": (1e-3, 3e-4)}
        for values in itertools.product(*grid.values()):
            torch.manual_seed(0)
            print(values)
"""
    program = analyzed(text)
    kept = [statement.source for statement in program.statements if "ROOT" in statement.source]
    for source in kept:
        compile(source, "kept", "exec")
    assert any('ROOT = "é"; pass; NAME = "übung"' in source for source in kept)
