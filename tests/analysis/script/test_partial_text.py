"""Names of files that are put together: what is not known of them is never guessed."""

import ast

import pytest

from grader.analysis.effects import Aliases
from grader.analysis.script.definitions import Definitions
from grader.analysis.script.partial_text import PartialText, bound_once
from grader.analysis.source import source
from grader.analysis.units import units

PROGRAM = """
import os, sys
from os import path
from pathlib import Path
ID, OUT = "4001", Path("out")
NUMBER = 7
NAMES = ("a", "b")
ASKED = input()
PATTERN = "{}_lab.pth"
NAMED = f"{ASKED}_lab.pth"
twice = "a"
twice = "b"
longer = "a"
longer += "b"
def name_of(number, kind="lab"):
    os.makedirs(OUT, exist_ok=True)
    name = f"{number}_{kind}.pth"
    return os.path.join(OUT, name)
def one_of_two(number):
    if number:
        return "a"
    return "b"
def changed(number):
    name = "lab"
    name += number
    return name
def hidden(ID):
    return ID + "_lab.pth"
"""


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('"{}_lab.pth".format(ID)', "4001_lab.pth"),
        ('"{}_lab.pth".format(ASKED)', "?_lab.pth"),
        ('"{1}/{0}_{kind}.pth".format(ASKED, ID, kind="lab")', "4001/?_lab.pth"),
        ('"{:>8}_lab.pth{{}}".format(ID)', "?_lab.pth{}"),
        ('"{0.name}_lab.pth".format(ID)', "?_lab.pth"),
        ('"{}_{}.pth".format(*NAMES)', "?_?.pth"),
        ('"{_lab.pth".format(ID)', "?"),
        ("PATTERN.format(ASKED)", "?_lab.pth"),
        ('f"{ASKED}_{{}}_lab.pth".format(ID)', "?_?_lab.pth"),
        ('"%s_lab.pth" % ID', "4001_lab.pth"),
        ('"%s_%s.pth" % (ASKED, "lab")', "?_lab.pth"),
        ('"%d%%_%05d_lab.pth" % (NUMBER, NUMBER)', "7%_?_lab.pth"),
        ('"%(id)s_lab.pth" % {"id": ID}', "?_lab.pth"),
        ('"%s_%s.pth" % NAMES', "?_?.pth"),
        ('"%d.pth" % 2.5', "?.pth"),
        ('os.path.join("out", ASKED + "_lab.pth")', "out/?_lab.pth"),
        ('path.join("out", "lab.pth")', "out/lab.pth"),
        ('Path("out").joinpath(ASKED, "lab.pth").resolve()', "out/?/lab.pth"),
        ('Path("out") / f"{ASKED}_lab.pth"', "out/?_lab.pth"),
        ('str(OUT / "lab.pth")', "out/lab.pth"),
        ('"_".join([ASKED, "Lab8", "Homework.pth"])', "?_Lab8_Homework.pth"),
        ('"".join((ID, "_lab", ".pth"))', "4001_lab.pth"),
        ('"_".join(sys.argv)', "?"),
        ("NAMED", "?_lab.pth"),
        ('f"{ID!r}_{NUMBER + 1}_{ASKED}.pth"', "?_8_?.pth"),
        ('f"{ASKED}_{len(ID) + 1}_{len(ID) / 2}_{len(ID) % 2}.pth"', "?_?_?_?.pth"),
        ('f"{ID!r}_lab.pth"', "?_lab.pth"),
        ("name_of(ASKED)", "out/?_lab.pth"),
        ('name_of(ID, kind="x")', "out/4001_x.pth"),
        ("hidden(ASKED)", "?_lab.pth"),
        ('hidden(*["x"])', "?_lab.pth"),
        ('one_of_two("lab.pth")', "?"),
        ('changed("lab.pth")', "?"),
        ('sys.anything("lab.pth")', "?"),
        ('open(ID + "_lab.pth", "wb")', "4001_lab.pth"),
        ('twice + "_lab.pth"', "?_lab.pth"),
        ('longer + "_lab.pth"', "?_lab.pth"),
    ],
)
def test_what_is_known_of_a_text(expression: str, text: str) -> None:
    read = units(source("homework.py", PROGRAM.encode()).cells, {})
    texts = PartialText(bound_once(read), Aliases(read), Definitions(read))
    node = ast.parse(expression, mode="eval").body
    assert texts.of(node).replace("\0", "?") == text


def test_names_that_stand_for_each_other_are_unknown() -> None:
    """And what doubles at every step ends."""
    circle = 'a = b + "x"\nb = a\n' + "".join(f"c{n} = c{n + 1} + c{n + 1}\n" for n in range(40))
    read = units(source("homework.py", circle.encode()).cells, {})
    texts = PartialText(bound_once(read), Aliases(read), Definitions(read))
    assert texts.of(ast.parse("a", mode="eval").body).endswith("x")
    assert set(texts.of(ast.parse("c0", mode="eval").body)) == {"\0"}
