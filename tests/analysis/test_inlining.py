"""Expressions of a function, written out as they are in one of its calls."""

import ast

import pytest

from grader.analysis.flow import arguments
from grader.analysis.inlining import written_out

FOLDER = """
def folder(name, *more, size=32, **others):
    steps = [*more, ToTensor(), Normalize(MEAN)]
    crop: object = RandomCrop(size)
    return ImageFolder(f"data/{name}", transform=VALUE)
"""


def out(value: str, call: str, text: str = FOLDER) -> str | None:
    """What the transform of a function is in a call."""
    function = ast.parse(text.replace("VALUE", value)).body[0]
    made = ast.parse(call, mode="eval").body
    assert isinstance(function, ast.FunctionDef) and isinstance(made, ast.Call)
    found = written_out(function, ast.parse(value, mode="eval").body, arguments(function, made))
    return None if found is None else ast.unparse(found)


@pytest.mark.parametrize(
    ("value", "call", "expected"),
    [
        (
            "Compose(steps)",
            "folder('train', Flip(), crop)",  # the caller's own `crop`
            "Compose([*(Flip(), crop), ToTensor(), Normalize(MEAN)])",
        ),
        ("Compose(steps)", "folder('test')", "Compose([*(), ToTensor(), Normalize(MEAN)])"),
        (
            "Compose([crop, *steps])",
            "folder('a', size=28)",
            "Compose([RandomCrop(28), *[*(), ToTensor(), Normalize(MEAN)]])",
        ),
        ("crop", "folder('a', size=28)", "RandomCrop(28)"),
        ("crop", "folder('a')", "RandomCrop(32)"),
        ("Compose(name)", "folder()", None),
        ("Compose(others)", "folder('a', x=1)", None),
        ("Compose([t for t in more])", "folder('a')", None),
        ("Lambda(lambda x: x)", "folder('a')", None),
        ("Compose(MORE)", "folder('a')", "Compose(MORE)"),
    ],
)
def test_parameters_and_names_are_replaced(value: str, call: str, expected: str | None) -> None:
    assert out(value, call) == expected


@pytest.mark.parametrize(
    "change",
    [
        "steps.append(Flip())",
        "if name == 'train':\n        steps = [Flip()]",
        "steps += [Flip()]",
        "steps[0] = Flip()",
        "for steps in ([], [Flip()]): pass",
        "del steps",
    ],
)
def test_what_changes_is_not_written_out(change: str) -> None:
    """It may be one value or the other."""
    text = FOLDER.replace("    crop:", f"    {change}\n    crop:")
    assert out("Compose(steps)", "folder('train', Flip())", text) is None


def test_names_that_stand_for_each_other_end() -> None:
    text = "def folder(name):\n    a = b\n    b = a\n    return VALUE\n"
    assert out("Compose(a)", "folder('train')", text) is None
