"""What a program finds of its own source in its worker, however it looks for it."""

from collections.abc import Callable
from typing import Any

import pytest

from grader.domain.analyzed_program import Note, Omission, Place, Program, Statement, TunedValue

Load = Callable[..., Any]
SECRET = "letters that only the source has"
TEXT = f'''
# {SECRET}
import inspect, gc, linecache, sys
"{SECRET}"


class ViT:
    """Short."""

    # {SECRET}
    def forward(self, x):  # {SECRET}
        """{"y" * 600}{SECRET}"""
        "{SECRET}"
        return x * 2


print("{SECRET}")


def evaluate(model, data_loader, loss_history):

    return sys._getframe().f_lineno


class Reader:
    raise ValueError(str(EXPRESSION)[-480:])
'''
WAYS = {
    "getsource": "inspect.getsource(ViT.forward)",
    "getsourcelines": "inspect.getsourcelines(ViT.forward)",
    "getcomments": "inspect.getcomments(ViT.forward)",
    "linecache": "''.join(linecache.getlines(ViT.forward.__code__.co_filename))",
    "docstring": "ViT.forward.__doc__",
    "constants of the code": "ViT.forward.__code__.co_consts",
    "the module's docstring": "sys.modules[ViT.__module__].__doc__",
    "all that is kept of lines": "[v[2] for v in linecache.cache.values() if 'submission' in str(v[3])]",
}


@pytest.mark.parametrize("way", WAYS)
def test_only_what_is_executed_is_found(way: str, load: Load) -> None:
    found = load(TEXT.replace("EXPRESSION", WAYS[way])).loaded
    assert found.kinds["evaluate"] == "function"
    [problem] = found.problems
    assert problem.type == "ValueError" and problem.message.text, problem
    assert "letters that only" not in problem.message.text
    assert problem.message.text.count("y") <= 500


def test_what_is_found_is_on_the_students_own_lines(load: Load) -> None:
    """`inspect.getsource` finds a function, though much before it is left out."""
    expression = "(inspect.getsource(evaluate), inspect.getsourcelines(ViT.forward)[1])"
    [problem] = load(TEXT.replace("EXPRESSION", expression)).loaded.problems
    source = "def evaluate(model, data_loader, loss_history):\n\n    return sys._getframe().f_lineno\n"
    assert problem.message.text == str((source, 11))
    assert problem.where == "homework.py:26"


def test_two_statements_on_a_line_are_both_seen(load: Load) -> None:
    told = "class Reader:\n    raise ValueError(linecache.getline(Reader0.f.__code__.co_filename, 2))\n"
    text = "import linecache\nWIDTH = 2; HEIGHT = 1 / WIDTH\nclass Reader0:\n    def f(self): pass\n" + told
    [problem] = load(text + "def evaluate(): return Reader, Reader0, HEIGHT\n").loaded.problems
    assert problem.message.text == "WIDTH = 2; HEIGHT = 1 / WIDTH\n"
    assert problem.where == "homework.py:6"


def test_a_worker_gets_nothing_else_of_a_program() -> None:
    """Sentences, statements that are left out, values that were read: all of them are the student's words."""
    place = Place("homework.py", 1)
    program = Program(
        "homework.py",
        (Statement("x = 1", place, ("x",), "constant"),),
        omissions=(Omission(place, SECRET, SECRET),),
        unresolved=(("ViT", SECRET),),
        tuned=(TunedValue("image_size", "28 x 28" + SECRET, place), TunedValue("transform", SECRET, place)),
        notes=(Note(SECRET),),
        source={"homework.py": SECRET, SECRET: ""},
    )
    sent = program.executable
    assert SECRET not in repr(sent)
    assert sent.statements == program.statements
    assert [(value.name, value.value[:7]) for value in sent.tuned] == [("image_size", "28 x 28")]
    assert sent.executable == sent
