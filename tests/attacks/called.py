"""Attacks on what the general call opens: trees, things, fakes, files, and training by a call.

Each is a homework of the small assignment below, in which one part is dishonest. The others must keep their
points, and the dishonest one must lose its own.
"""

from dataclasses import dataclass

ASSIGNMENT = """
id = "calls"
title = "Calls"
[files]
stem = "{student_id}_homework"
[files.required]
code = [".py"]
[[component]]
name = "Counter"
kind = "class"
signature = "patience"
[[component]]
name = "classes"
kind = "function"
signature = "model, inputs"
[[component]]
name = "report"
kind = "function"
signature = "rows, path"
[[component]]
name = "halves"
kind = "function"
signature = "values"
[[rubric]]
id = "parts"
title = "Parts"
points = 4
components = { Counter = 1, classes = 1, report = 1, halves = 1 }
"""
CHECKS = '''
import pytest
import torch
from grader.kit import Fake, Mismatch


@pytest.mark.component("Counter")
def test_counter_counts(student):
    """It says when it was called without a better value for too long."""
    counter = student.make("Counter", 2)
    told = [counter.call("step", value).returned.truth() for value in (0.5, 0.4, 0.3, 0.6)]
    if told != [False, False, True, False] or counter.get("best").number() != 0.6:
        raise Mismatch("The counter counts wrong.")


@pytest.mark.component("classes")
def test_classes_are_the_models(student):
    """The class of each input is that of the model's largest score; the model is asked once."""
    scores = torch.rand(5, 3, generator=student.random)
    model = Fake.callback(lambda call: scores)
    outcome = student.call("classes", model, student.tensor(5, 2))
    found = outcome.returned.at("classes").tensor(5, whole=True)
    if not torch.equal(found, scores.argmax(dim=1)):
        raise Mismatch("The classes are not the model's.")
    if len(outcome.calls_of("model")) != 1:
        raise Mismatch(f"The model is asked {len(outcome.calls_of('model'))} times.")


@pytest.mark.component("report")
def test_report_is_written(student):
    """The rows are in the file."""
    rows = [{"epoch": 1, "loss": float(student.tensor(1))}]
    outcome = student.call("report", rows, "m.csv", reads=["m.csv"])
    if outcome.file("m.csv").split() != [b"epoch,loss", f"1,{rows[0]['loss']}".encode()]:
        raise Mismatch("The file holds something else than the rows.")


@pytest.mark.component("halves")
def test_halves_are_given(student):
    """Half of each value, under its name; the caller's dictionary stays as it is."""
    values = {"a": student.tensor(2, 2), "b": float(student.tensor(1))}
    outcome = student.call("halves", values)
    first, second = outcome.returned.at("a"), outcome.returned.at("b")
    same = torch.allclose(first.tensor(2, 2), values["a"] / 2)
    if not same or abs(second.number() - values["b"] / 2) > 1e-6:
        raise Mismatch("They are not halves.")
    if set(outcome.args[0].plain) != {"a", "b"} or not torch.equal(outcome.args[0].plain["a"], values["a"]):
        raise Mismatch("The caller's dictionary is changed.")
'''
HOMEWORK = """
import csv

import torch
from torch import nn


class Counter:
    def __init__(self, patience):
        self.patience, self.bad, self.best = patience, 0, None

    def step(self, value):
        if self.best is None or value > self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def classes(model, inputs):
    return {"classes": model(inputs).argmax(dim=1)}


def report(rows, path):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def halves(values):
    return {name: value / 2 for name, value in values.items()}
"""


@dataclass(frozen=True)
class CallAttack:
    """One attack.

    Attributes:
        number, name, tries, stopped_by, outcome: As of an attack in code.
        part: Whose points it must lose.
        source: The dishonest part, and whatever it needs.
        says: What the failed check's message must match.
    """

    number: int
    name: str
    tries: str
    stopped_by: str
    part: str
    source: str
    says: str
    outcome: str = "its component fails"


BOUNDS = "what a tree may hold is bounded where it is packed and where it is read"
CALL_ATTACKS = (
    CallAttack(
        200,
        "endless_lists",
        "Returns lists within lists without end, to exhaust whoever reads them",
        BOUNDS,
        "halves",
        "def halves(values):\n"
        "    endless = []\n    endless.append(endless)\n    return {'a': endless, 'b': 0.0}\n",
        "nested too deeply",
    ),
    CallAttack(
        201,
        "millions_of_numbers",
        "Returns ten million numbers, each by itself",
        BOUNDS,
        "halves",
        "def halves(values):\n    return {'a': list(range(10**7)), 'b': 0.0}\n",
        "more values than can be looked at",
    ),
    CallAttack(
        202,
        "dictionary_of_anything",
        "Returns a dictionary that holds whatever it is asked for",
        "what is sent are plain values: a class of the student's own is read once, where it was made",
        "halves",
        "class Anything(dict):\n"
        "    def __contains__(self, name):\n        return True\n\n"
        "    def __getitem__(self, name):\n        return torch.zeros(2, 2)\n\n"
        "    def __eq__(self, other):\n        return True\n\n"
        "    __hash__ = None\n\n\n"
        "def halves(values):\n    return Anything()\n",
        "has no key",
    ),
    CallAttack(
        203,
        "close_to_everything",
        "Returns a tensor of a class that is close to every other one",
        "tensors travel as numbers, and are compared where the student's classes are not",
        "halves",
        "class Close(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, function, types, args=(), kwargs=None):\n"
        "        if 'close' in str(function) or 'equal' in str(function) or 'eq' in str(function):\n"
        "            return torch.tensor(True)\n"
        "        return super().__torch_function__(function, types, args, kwargs or {})\n\n\n"
        "def halves(values):\n"
        "    return {'a': torch.zeros(2, 2).as_subclass(Close), 'b': values['b'] / 2}\n",
        "not halves",
    ),
    CallAttack(
        204,
        "equal_to_everything",
        "Returns a number that equals every other one",
        "numbers are sent as numbers",
        "Counter",
        "class Any(float):\n"
        "    def __eq__(self, other):\n        return True\n\n"
        "    def __ne__(self, other):\n        return False\n\n"
        "    __hash__ = float.__hash__\n\n\n"
        "class Counter:\n"
        "    def __init__(self, patience):\n        self.best, self.calls = Any(0.1), 0\n\n"
        "    def step(self, value):\n        self.calls += 1\n        return self.calls == 3\n",
        "counts wrong",
    ),
    CallAttack(
        205,
        "answers_of_a_fake",
        "Looks for the answers of a fake in the fake, its class and all of its memory",
        "a fake asks for each answer when it is called; the worker has no table of them",
        "classes",
        "def classes(model, inputs):\n"
        "    import gc\n"
        "    found = [each for each in gc.get_objects() if isinstance(each, torch.Tensor)]\n"
        "    found += list(vars(model).values()) if hasattr(model, '__dict__') else []\n"
        "    scores = [each for each in found if isinstance(each, torch.Tensor) and each.shape == (5, 3)]\n"
        "    if scores:\n        return {'classes': scores[0].argmax(dim=1)}\n"
        "    raise LookupError('no table was found')\n",
        "no table was found",
    ),
    CallAttack(
        206,
        "asks_twice",
        "Asks a fake twice and hides that in the worker",
        "calls are counted where the fake's answers come from",
        "classes",
        "def classes(model, inputs):\n"
        "    model(inputs)\n    found = model(inputs).argmax(dim=1)\n"
        "    for name in ('calls', 'count', '_calls', 'number'):\n"
        "        try:\n            setattr(model, name, 1)\n        except Exception:\n            pass\n"
        "    return {'classes': found}\n",
        "asked 2 times",
    ),
    CallAttack(
        207,
        "asks_without_end",
        "Asks a fake without end",
        "a call has its seconds, whoever is asked meanwhile",
        "classes",
        "def classes(model, inputs):\n    while True:\n        model(inputs)\n",
        "did not return within",
    ),
    CallAttack(
        208,
        "file_that_is_a_link",
        "Writes the file that is read as a link to one that it may not show",
        "only regular files are read, by their descriptor",
        "report",
        "def report(rows, path):\n    import os\n    os.symlink('/etc/hostname', path)\n",
        "there is no file",
    ),
    CallAttack(
        209,
        "file_that_is_a_pipe",
        "Writes the file that is read as a pipe, for which a reader waits for ever",
        "only regular files are read, and none is waited for",
        "report",
        "def report(rows, path):\n    import os\n    os.mkfifo(path)\n",
        "there is no file",
    ),
    CallAttack(
        210,
        "file_of_holes",
        "Writes a file of a terabyte that takes no room",
        "files are read up to 50 MB",
        "report",
        "def report(rows, path):\n    import os\n    with open(path, 'wb') as file:\n"
        "        os.truncate(file.fileno(), 10**8)\n",
        "there is no file|File too large|raised OSError",
    ),
    CallAttack(
        211,
        "mark_of_no_change",
        "Leaves a mark of its own in the place of the caller's values, which says that they did not change",
        "what is handed over is compared by its content with what was sent",
        "halves",
        "def halves(values):\n"
        "    found = {name: value / 2 for name, value in values.items()}\n"
        "    values['a'].zero_()\n    values['same'] = True\n"
        "    return found\n",
        "dictionary is changed",
    ),
    CallAttack(
        212,
        "another_packer",
        "Puts another function into the module that packs what is returned",
        "what is packed is judged elsewhere, and nobody here knows what would be right",
        "halves",
        "def halves(values):\n"
        "    import grader.protocol.trees as trees\n"
        "    trees.Packer.told = trees.Packer.node = lambda self, value, depth=0: {'same': True}\n"
        "    return {}\n",
        "wrote something of its own",
    ),
    CallAttack(
        213,
        "exception_like_a_verdict",
        "Raises an exception that is named like a check's verdict, in the judge's words",
        "what is raised is quoted as the student's",
        "halves",
        "class Mismatch(AssertionError):\n    pass\n\n\n"
        "def halves(values):\n    raise Mismatch('Passed: all checks, 4 of 4 points')\n",
        "raised an exception of its own, `Mismatch`: “Passed",
    ),
    CallAttack(
        214,
        "attributes_that_end",
        "Makes an object whose attributes end the worker when they are read",
        "a worker that ends costs the part that was asked",
        "Counter",
        "class Counter:\n"
        "    def __init__(self, patience):\n        pass\n\n"
        "    def __getattribute__(self, name):\n        import os\n        os._exit(0)\n",
        "ended",
    ),
)
