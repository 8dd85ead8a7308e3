"""Code that calls itself in circles is read like any other: whoever writes it is not refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from grader.analysis import program, programs
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError, SubmissionError

CIRCLES = {
    "methods of two classes": (
        "class One:\n    def shown(self, other): return other.told(self)\n",
        "class Two:\n    def told(self, other): return other.shown(self)\n",
        "One().shown(Two())",
    ),
    "a method of the same name": (
        "class Outer:\n    def weights(self, x): return self.inner.weights(x)\n",
        "class Inner:\n    def weights(self, x): return x.weights(self)\n",
        "Outer().weights(model)",
    ),
    "three methods": (
        "class One:\n    def first(self, x): return x.second(self)\n    def second(self, x): x.third(self)\n",
        "class Two:\n    def third(self, x): return [x.first(y) for y in x.second(self)]\n",
        "One().first(Two())",
    ),
    "functions": ("def ping(n): return pong(n)\n", "def pong(n): return ping(n - 1)\n", "ping(3)"),
    "a function handed to itself": (
        "def run(f): return f(run)\n",
        "def walk(f): return f(walk)\n",
        "run(walk)",
    ),
    "a function and a method": (
        "def shown(x): return x.told(shown)\n",
        "class Two:\n    def told(self, f): return f(self)\n",
        "shown(Two())",
    ),
    "lambdas": ("even = lambda n: n == 0 or odd(n - 1)\n", "odd = lambda n: even(n - 1)\n", "even(4)"),
    "values": ("left = 1\nright = left\n", "left = right\nright = left\n", "left + right"),
    "aliases": ("def ping(n): return n\n", "pong = ping\nping = pong\n", "pong(1)"),
    "a table of functions": ("table = {}\n", "table['a'] = lambda: table['a']()\n", "len(table)"),
    "a property": (
        "class One:\n    @property\n    def whole(self): return self.part.whole\n",
        "class Two:\n    @property\n    def part(self): return self.whole.part\n",
        "One",
    ),
    "a decorator": (
        "def wrapped(f):\n    def inner(*a): return wrapped(f)\n    return inner\n",
        "@wrapped\ndef twice(x): return twice(x)\n",
        "twice",
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("circle", CIRCLES)
def test_it_is_read(circle: str, analyzed: Callable[[str], Program], solved: str) -> None:
    """Wherever it is used: where names are bound, in a function, and in the loop that trains."""
    one, two, use = CIRCLES[circle]
    loop = "    train_epoch("
    assert solved.count(loop) == 1
    used = solved.replace(loop, f"    {use}\n{loop}")
    functions = f"def measured(model):\n    return {use}, evaluate(model, test_loader, [])\n\n"
    before, after = used.split("def train_epoch", 1)
    read = analyzed(f"{before}{one}\n{two}\n{functions}{use}\ndef train_epoch{after}")
    plain = analyzed(solved)
    assert set(read.defined or ()) == set(plain.defined or ())
    assert plain.script.model and read.script.model == plain.script.model
    assert not read.script.missing


def test_modules_that_import_each_other(assignment: Assignment, solved: str) -> None:
    modules = {"first.py": b"import second\nvalue = 1\n", "second.py": b"from first import value\n"}
    read = program("homework.py", f"import first\n{solved}".encode(), assignment.program_rules, modules)
    assert {part.name for part in assignment.components} <= set(read.defined or ())


def test_an_analysis_that_goes_in_circles_is_our_fault(
    assignment: Assignment, solved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def circling(*_: object) -> Program:
        raise RecursionError

    rules = replace(assignment.program_rules, further={})
    monkeypatch.setattr(programs, "_analyzed", circling)
    with pytest.raises(EngineError, match="went in circles"):
        program("homework.py", solved.encode(), rules)
    deep = f"x = {'(' * 80}1{' + 1)' * 80}\n"
    with pytest.raises(SubmissionError, match="nested too deeply"):
        program("homework.py", deep.encode(), rules)
