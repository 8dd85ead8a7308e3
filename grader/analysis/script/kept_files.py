"""Data flow through files: which statements load what others saved.

It sees `torch.save` and `torch.load`, written so, and names that are literals. Any other name may be any
file, so it errs toward dependence; it does not see other ways to keep weights. `dependence` decides what
belongs to the script.

Tests: tests/training/test_replay.py
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass

# in the place of names: no name has such characters
ANY_READ, ANY_WRITTEN = "<a file that may be read>", "<a file that may be written>"


@dataclass(frozen=True)
class Files:
    """What is read and written, as if files were names.

    Attributes:
        read: Of what a statement depends on.
        written: Of what it changes.
    """

    read: frozenset[str]
    written: frozenset[str]


def files_of(nodes: Iterable[ast.AST]) -> Files:
    """The files that `torch.load` and `torch.save` are given, as far as their names can be read."""
    read: set[str] = set()
    written: set[str] = set()
    for node in (node for outer in nodes for node in ast.walk(outer)):
        match node:
            case ast.Call(func=ast.Attribute(attr="load", value=ast.Name(id="torch")), args=[place, *_]):
                read |= {_name(place), ANY_WRITTEN} if _name(place) else {ANY_READ}
            case ast.Call(func=ast.Attribute(attr="save", value=ast.Name(id="torch")), args=[_, place, *_]):
                written |= {_name(place), ANY_READ} if _name(place) else {ANY_READ, ANY_WRITTEN}
    return Files(frozenset(read), frozenset(written))


def _name(place: ast.expr) -> str:
    """A file by its name; empty where that is not written there."""
    if isinstance(place, ast.Constant) and isinstance(place.value, str):
        return f"<the file {place.value}>"
    return ""
