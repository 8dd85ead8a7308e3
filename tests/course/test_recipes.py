"""Tuned recipes: homeworks that hold only what differs from the solution or from another recipe."""

import ast
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.composing import TunedRecipe, composed, recipes
from grader.course.homework_versions import Kind, homework_versions
from grader.course.student_template import student_files
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError

HOMEWORK = """\
RATE = 1
first, second = 1, 2


def run():
    return RATE


for epoch in range(RATE):
    run()
RATE = 2
"""
SOLUTION = """
RATE = 1
EPOCHS = 10


class Doubler:
    def __init__(self, dim): ...
"""
FIRST = '''"""Slow and steady. More words."""

RATE = 0.5  # without slowness: 1
HALF = RATE / 2


class Doubler:
    """Another."""

    def __init__(self, dim):
        self.rate = HALF
'''
SECOND = '"""Longer.\n\nBased on: first\n"""\n\nEPOCHS = 20  # without patience: 10\n'


@pytest.fixture
def tuned(tiny_course: Path) -> Path:
    """The folder of the small assignment, with two recipes of which one builds on the other."""
    folder = tiny_course / "reference" / "tiny"
    (folder / "solution.py").write_text(SOLUTION, encoding="utf-8")
    (folder / "recipes").mkdir()
    (folder / "recipes" / "first.py").write_text(FIRST, encoding="utf-8")
    (folder / "recipes" / "second.py").write_text(SECOND, encoding="utf-8")
    return folder


def of(folder: Path) -> dict[str, TunedRecipe]:
    """The recipes of an assignment's folder by name."""
    return {each.name: each for each in recipes(read_assignment(folder))}


def values(source: str) -> dict[str, object]:
    """What a homework defines."""
    names: dict[str, object] = {}
    exec(source, names)  # noqa: S102 - it is ours
    return names


def test_values_and_loops_take_the_place_of_the_homeworks() -> None:
    """Of the last one to the same names; several names are replaced together."""
    part = "RATE = 7\nfirst, second = 3, 4\nfor epoch in range(5):\n    pass\n"
    expected = "RATE = 1\nfirst, second = 3, 4\ndef run():\n    return RATE\n"
    expected += "for epoch in range(5):\n    pass\nRATE = 7"
    assert ast.unparse(ast.parse(composed(HOMEWORK, part, values=True))) == ast.unparse(ast.parse(expected))


def test_the_values_of_a_form_are_its_own() -> None:
    """Without being asked for, an assignment goes with the definition behind it."""
    found = composed(HOMEWORK, "RATE = 7\n\n\ndef run():\n    return 8\n")
    assert (
        found.index("RATE = 1") < found.index("RATE = 7") < found.index("return 8") < found.index("RATE = 2")
    )


def test_a_recipe_builds_on_another(tuned: Path) -> None:
    found = of(tuned)
    assert list(found) == ["first", "second"]
    assert (found["first"].file, found["first"].says) == ("recipes/first.py", "Slow and steady.")
    first, second = values(found["first"].source), values(found["second"].source)
    assert (first["RATE"], first["EPOCHS"]) == (0.5, 10)
    assert (second["RATE"], second["EPOCHS"], second["HALF"]) == (0.5, 20, 0.25)


def test_ingredients_are_taken_out_one_at_a_time(tuned: Path) -> None:
    """Those of the recipe below too; what depends on a value follows it."""
    second = of(tuned)["second"]
    assert set(second.ingredients) == {"slowness", "patience"}
    without = values(second.changed(second.ingredients["slowness"]))
    assert (without["RATE"], without["HALF"], without["EPOCHS"]) == (1, 0.5, 20)
    assert values(second.changed("EPOCHS = 3\nRATE = 2\n"))["HALF"] == 1
    with pytest.raises(CourseError, match="no value to be replaced by 'EPOCH = 3'"):
        second.changed("EPOCH = 3\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("X = 1\n", "no docstring"),
        ('"""A.\n\nBased on: nobody\n"""\n', "no recipe 'nobody'"),
        ('"""A.\n\nBased on: second\n"""\n', "are based on each other"),
        ('"""A.\n\nPolicy: nothing\n"""\n', "no such policy"),
        ('"""A."""\nX = (\n', "not valid Python"),
    ],
)
def test_a_malformed_recipe_is_told_in_a_sentence(tuned: Path, text: str, words: str) -> None:
    (tuned / "recipes" / "first.py").write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=words) as raised:
        of(tuned)
    assert str(raised.value).startswith("recipes/")


def test_a_recipe_is_a_form_that_meets_every_check(tuned: Path) -> None:
    found = [each for each in homework_versions(read_assignment(tuned)) if "recipes/" in each.file]
    assert [(each.kind, each.name, each.parts) for each in found] == [
        (Kind.FORM, "first", ()),
        (Kind.FORM, "second", ()),
    ]


def test_an_assignment_needs_no_recipes(tiny_course: Path) -> None:
    assert recipes(read_assignment(tiny_course / "reference" / "tiny")) == ()


def test_students_receive_nothing_of_the_recipes(assignment: Assignment) -> None:
    """No file, and no line that is a recipe's own."""
    given = student_files(assignment.folder)
    assert not any("recipe" in name for name in given)
    text = "\n".join(given.values())
    for name in ("LEAST_CROP", "LABEL_SMOOTHING", "class Embedding", "EMBEDDING_NORM"):
        assert any(name in each.source for each in recipes(assignment)) and name not in text
