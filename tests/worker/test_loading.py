"""Executing a homework's statements: every one gets its chance, and points at the student's own line."""

import re
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.domain.analyzed_program import NearName, Place, Program, Statement
from grader.domain.program_run import AffineFake
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import Built, Called
from grader.protocol.requests import Build, Call

Load = Callable[..., Any]
HEAD = "import torch\nfrom torch import nn\n"
PRENORM = """
class PreNorm(nn.Module):
    def __init__(self, dim, fn=None):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(x)
"""


def of_cells(*cells: str, **more: Any) -> Program:
    """A program with a statement per cell of a notebook, beginning at line 3."""
    statements = tuple(
        Statement(text, Place(f"cell {number}", 3), (), "definition")
        for number, text in enumerate(cells, start=1)
    )
    return Program("homework.ipynb", statements, {"PreNorm": Place("cell 2", 3)}, **more)


def statements(text: str, file: str = "homework.py", line: int = 1) -> tuple[Statement, ...]:
    """Statements that are separated by blank lines."""
    found = []
    for part in re.split(r"\n\n(?=\S)", textwrap.dedent(text).strip("\n")):
        words = part.replace("(", " ").replace(":", " ").replace(",", " ").split()
        imported = part.partition(" import ")[2]
        binds = (imported,) if imported else (words[1] if words[0] in ("class", "def") else words[0],)
        found.append(Statement(part, Place(file, line), binds, "definition"))
        line += part.count("\n") + 2
    return tuple(found)


def program(text: str, *defined: str, **fields: Any) -> Program:
    """A program of these statements that defines these graded names."""
    source = {"homework.py": textwrap.dedent(text).strip("\n")}
    return Program(
        "homework.py",
        statements(text),
        {name: Place("homework.py", 1) for name in defined},
        source=source,
        **fields,
    )


def test_statement_that_raises_is_reported_and_the_others_follow(load: Load) -> None:
    """Each problem has its type, its words, its place and its line."""
    text = """
        import math

        width = math.sqrt(-1)

        import torch.no_such_part

        def graded():
            return 1

        late = missing_name
        """
    loaded = load(program(text, "graded", "late", "width")).loaded
    assert loaded.kinds == {"graded": "function"}
    assert [(p.type, p.where) for p in loaded.problems] == [
        ("ValueError", "homework.py:3"),
        ("ModuleNotFoundError", "homework.py:5"),
        ("NameError", "homework.py:10"),
    ]


def test_place_is_the_innermost_line_of_the_student(load: Load) -> None:
    """Not the line of the library that raised, nor the statement that called."""
    text = """
        import torch

        def inner():
            x = torch.zeros(2)
            return x.reshape(3)

        value = inner()
        """
    (problem,) = load(program(text)).loaded.problems
    assert problem.where == "homework.py:5"


def test_place_in_a_notebook_is_the_cell_and_its_line(load: Load) -> None:
    """As the student sees it, counted within the cell."""
    made = (Statement("def f():\n    1 / 0", Place("cell 4", 2), ("f",), "definition"),)
    made += (Statement("f()", Place("cell 7", 1), (), "needed"),)
    notebook = Program("homework.ipynb", made, source={"cell 4": "# f\ndef f():\n    1 / 0", "cell 7": "f()"})
    (problem,) = load(notebook).loaded.problems
    assert problem.where == "cell 4, line 3"


def test_annotations_stay_text_for_all_later_statements(load: Load) -> None:
    """`from __future__ import annotations` counts for the file, not for its statement; also without it."""
    later = """
        def graded(x: NoSuchType) -> list[Another]:
            return x
        """
    assert load(program(later, "graded")).loaded.kinds == {}
    whole = "from __future__ import annotations\n\n" + textwrap.dedent(later).strip("\n")
    loaded = load(program(whole, "graded")).loaded
    assert loaded.kinds == {"graded": "function"}
    assert loaded.problems == ()


def test_kinds_tell_classes_functions_and_other_values(load: Load) -> None:
    """A graded name that is bound to a number is not a function."""
    text = """
        class ViT:
            pass

        def evaluate():
            pass

        PreNorm = 5

        Attention = lambda x: x
        """
    names = ("ViT", "evaluate", "PreNorm", "Attention", "Transformer")
    kinds = load(program(text, *names)).loaded.kinds
    assert kinds == {"ViT": "class", "evaluate": "function", "PreNorm": "other", "Attention": "function"}


@pytest.mark.parametrize(
    "end", ["raise SystemExit(0)", "exit(1)", "raise KeyboardInterrupt", "raise GeneratorExit"]
)
def test_leaving_at_import_is_a_statement_that_raised(load: Load, end: str) -> None:
    """What follows is loaded all the same."""
    text = f"import sys\n\nexit = sys.exit\n\nif True:\n    {end}\n\ndef graded():\n    pass"
    loaded = load(program(text, "graded")).loaded
    assert loaded.kinds == {"graded": "function"}
    (problem,) = loaded.problems
    assert problem.type in ("SystemExit", "KeyboardInterrupt", "GeneratorExit")
    assert problem.where == "homework.py:6"


def test_ending_the_process_at_import_is_a_death(load: Load) -> None:
    """It cannot be undone, but it is told."""
    with pytest.raises(WorkerFault, match="exit code 3") as fault:
        load(program("import os\n\nos._exit(3)"))
    assert fault.value.kind == "death"


def test_what_is_printed_does_not_disturb_the_conversation(load: Load) -> None:
    """By print, to the descriptor, by another process, and in masses."""
    text = """
        import os, sys, subprocess

        print("GRF1" + "x" * 3_000_000)

        os.write(1, b"GRF1" + bytes(100))

        subprocess.run(["echo", "GRF1"])

        sys.stdout.flush()

        class ViT:
            print("in a class")
        """
    loaded = load(program(text, "ViT")).loaded
    assert loaded.kinds == {"ViT": "class"}
    assert loaded.problems == ()


ABSENT = """
    import no_such_package.deep.down as down

    from no_such_package import summary, Callback

    from another_absent.sub import tracked, Base, context

    import torch

    @tracked
    def evaluate():
        return "mine"

    @context.step(name="x")
    def train_epoch():
        return "mine too"

    class ViT(torch.nn.Module):
        pass

    class Logger(Base, Callback):
        def value(self):
            return 3

    with context("run") as run:
        run.log({"x": 1})
        inside = True

    items = [x for x in summary(ViT(), (1, 28, 28)).rows["all"]]

    assert evaluate() == "mine" and train_epoch() == "mine too"

    assert Logger().value() == 3 and inside and items == [] and not summary

    down.anything.at.all = 5
    """


def test_absent_modules_are_inert_however_they_are_used(load: Load) -> None:
    """As modules, names, decorators with and without arguments, base classes, context managers."""
    loaded = load(program(ABSENT, "ViT", "evaluate", "train_epoch")).loaded
    assert loaded.problems == ()
    assert loaded.absent_modules == ("no_such_package", "another_absent")
    assert loaded.kinds == {"ViT": "class", "evaluate": "function", "train_epoch": "function"}


def test_only_the_student_gets_fakes(load: Load) -> None:
    """A library that looks for an optional package must still learn that it is not there."""
    text = """
        import json.tool, types, sys

        def probe(name):
            # a function of a library: compiled under another file's name
            code = compile(f"import {name}", "/lib/python/library.py", "exec")
            exec(code, {})

        probe("optional_package")
        """
    loaded = load(program(text)).loaded
    assert [p.type for p in loaded.problems] == ["ModuleNotFoundError"]
    assert loaded.absent_modules == ()


def test_part_of_a_package_that_needs_an_absent_one_is_inert(load: Load) -> None:
    """PyTorch's writer for TensorBoard imports tensorboard; logging must not keep a homework from loading."""
    text = """
        from torch.utils.tensorboard import SummaryWriter
        import torch.utils.tensorboard as boards

        writer = SummaryWriter("runs")
        writer.add_scalar("loss", 1.0, 0)

        def evaluate():
            return boards.SummaryWriter()
        """
    loaded = load(program(text, "evaluate")).loaded
    assert loaded.problems == ()
    assert loaded.absent_modules == ("torch.utils.tensorboard",)


def test_part_that_an_installed_package_does_not_have_is_an_error(load: Load) -> None:
    """A placeholder for it would hide a mistake."""
    loaded = load(program("from torch import no_such_thing\n\nimport torch.nn.no_such_module")).loaded
    assert [p.type for p in loaded.problems] == ["ImportError", "ModuleNotFoundError"]
    assert loaded.absent_modules == ()


NEAR = """
    import torch

    class Atention(torch.nn.Module):
        def __init__(self, *args):
            super().__init__()

        def forward(self, x):
            return 7 * x

    class Transformer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Atention(1)

        def forward(self, x):
            return self.part(x)
    """
NEARLY = (NearName("Attention", "Atention", Place("homework.py", 3)),)


def test_nearly_right_name_is_bound_and_replaced_under_both_names(load: Load) -> None:
    """The check asks for the expected name; the student's own code uses the other, also for fakes."""
    worker = load(program(NEAR, "Transformer", near_names=NEARLY))
    assert worker.loaded.kinds == {"Transformer": "class", "Attention": "class"}
    x = np.ones((1, 2, 3), dtype=np.float32)
    replaced = worker.ask(Build("Transformer", replace={"Attention": AffineFake((2.0,), (0.5,))}), Built)
    assert worker.ask(Call(replaced.handle, arrays={"0": x}), Called).arrays["output"].max() == 2.5
    own = worker.ask(Build("Transformer"), Built)
    assert worker.ask(Call(own.handle, arrays={"0": x}), Called).arrays["output"].max() == 7
    alone = worker.ask(Build("Attention"), Built)
    assert worker.ask(Call(alone.handle, arrays={"0": x}), Called).arrays["output"].max() == 7


def test_fake_takes_the_place_of_a_near_name_that_failed_to_load(load: Load) -> None:
    """The other component is tested all the same, and afterwards the name is gone again."""
    broken = NEAR.replace("class Atention(torch.nn.Module):", "class Atention(torch.nn.NoSuchBase):")
    worker = load(program(broken, "Transformer", near_names=NEARLY))
    assert worker.loaded.kinds == {"Transformer": "class"}
    built = worker.ask(Build("Transformer", replace={"Attention": AffineFake((2.0,))}), Built)
    x = np.ones((1, 2, 3), dtype=np.float32)
    assert worker.ask(Call(built.handle, arrays={"0": x}), Called).arrays["output"].max() == 2
    with pytest.raises(StudentRaised, match="Atention"):
        worker.ask(Build("Transformer"), Built)


def test_an_exception_has_the_students_line(load: Callable[..., Any]) -> None:
    """Scripts count lines of the file, notebooks lines of the cell."""
    text = HEAD + PRENORM.replace("return self.norm(x)", "y = x\n        return self.nrom(y)")
    worker = load(text)
    handle = worker.ask(Build("PreNorm", (4,)), Built).handle
    request = Call(handle, arrays={"0": np.ones((1, 2, 4), dtype=np.float32)})
    with pytest.raises(StudentRaised, match="nrom") as raised:
        worker.ask(request, Called)
    line = text.splitlines().index("        return self.nrom(y)") + 1
    assert raised.value.problem.where == f"homework.py:{line}"
    cells = load(of_cells(HEAD, PRENORM.strip().replace("self.norm(x)", "self.nrom(x)")))
    cells.ask(Build("PreNorm", (4,)), Built)
    with pytest.raises(StudentRaised) as raised:
        cells.ask(Call(0, arrays=request.arrays), Called)
    assert raised.value.problem.where == "cell 2, line 9"


def test_what_a_class_says_of_itself_is_cut(load: Callable[..., Any]) -> None:
    """Hostile messages and names arrive shortened, and exceptions that cannot be printed arrive."""
    worker = load(
        of_cells(
            "raise ValueError('v' * 10_000)",
            "class Odd(Exception):\n    def __str__(self):\n        raise RuntimeError\nraise Odd",
        )
    )
    first, second = worker.loaded.problems
    assert len(first.message.text) <= 500
    assert (second.type, second.message.text) == ("Odd", "")
