"""Drawn values are put where they are marked, and nowhere else."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import homework_versions
from grader.course.reference_solution import homework_source
from grader.course.variant_values import filled_code, filled_text, marked_values
from grader.domain.errors import CourseError

VALUES = {"heads": 8, "pool": "cls", "sizes": (8, 16), "bias": False}
CODE = '''\
"""{{heads}} in a text stays as it is."""
# there are {{heads}} heads
HEADS = 2  # variant: heads
SIZES: list[int] = [1]  # variant: sizes
word = "é"; POOL = "mean"  # variant: pool
shown = f"{{heads}} {HEADS}"  # {{ heads }} stays


def part():
    bias = True  # variant: bias
    return bias
'''


def test_marked_assignments_and_comments_are_filled() -> None:
    filled = filled_code(CODE, VALUES, "solution.py")
    expected = (
        CODE.replace("# there are {{heads}}", "# there are 8")
        .replace("HEADS = 2", "HEADS = 8")
        .replace("= [1]", "= [8, 16]")
        .replace('POOL = "mean"', 'POOL = "cls"')
        .replace("bias = True", "bias = False")
    )
    assert filled == expected
    assert filled_code(filled, VALUES, "solution.py") == filled
    found = marked_values(CODE, "solution.py", VALUES)
    assert [(each.name, each.variable) for each in found] == [
        ("heads", "HEADS"),
        ("sizes", "SIZES"),
        ("pool", "POOL"),
        ("bias", ""),
    ]


def test_without_values_everything_stays() -> None:
    text = '# {{heads}}\nx = f"{{a}}"\n'
    assert filled_code(text, {}, "s") == text == filled_text(text, {}, "s")
    assert filled_code("not python {{", {}, "s") == "not python {{"


def test_a_text_is_filled_anywhere() -> None:
    assert filled_text("$x^{{2}}$ {{heads}}\n{{pool}} {{sizes}}", VALUES, "README.md") == (
        "$x^{{2}}$ 8\ncls [8, 16]"
    )
    with pytest.raises(CourseError) as caught:
        filled_text("\n{{head}}", VALUES, "README.md")
    assert str(caught.value) == ("README.md:2: '{{head}}' names no value of [variant]. Did you mean 'heads'?")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("HEADS = 2  # variant: head\n", "s:1: '# variant: head' marks no value of [variant]. Did you mean"),
        ("\nHEADS = 1 + 1  # variant: heads\n", "s:2: '# variant: heads' does not follow an assignment"),
        ("print(2)  # variant: heads\n", "does not follow an assignment of a value that is written out"),
        ("# variant: heads\nHEADS = 2\n", "s:1: '# variant: heads' does not follow an assignment"),
        (
            "HEADS = [\n    1,\n]  # variant: heads\n",
            "out on the same line. Write it as in 'HEADS = 4  # variant: h",
        ),
        ("HEADS = (  # variant: heads\n", "s:1: not Python: "),
        (
            "# {{unknown}}\n",
            "s:1: '{{unknown}}' names no value of [variant]. It knows 'heads', 'pool', 'sizes'",
        ),
    ],
)
def test_what_is_wrong_with_a_mark_is_told(text: str, sentence: str) -> None:
    with pytest.raises(CourseError) as caught:
        filled_code(text, VALUES, "s")
    assert sentence in str(caught.value)


def test_a_mark_without_a_variant_is_refused() -> None:
    with pytest.raises(CourseError, match=r"State it in \[variant\.heads\] of assignment\.toml\.$"):
        filled_code("HEADS = 2  # variant: heads\n", {}, "s")


def test_values_reach_what_students_get_in_place_of_a_region() -> None:
    text = (
        "# >>> INSTEAD HEADS = 2  # variant: heads\nHEADS = int('2')\n# <<<\ndef part():\n"
        "    # >>> TODO part: make {{heads}}\n    # hint: not {{pool}}.\n    return 1\n    # <<<\n"
    )
    assert homework_source(text, "s", VALUES) == (
        "HEADS = 8  # variant: heads\ndef part():\n    # Hint: not cls.\n"
        '    raise NotImplementedError("TODO part: make 8")\n'
    )


def test_values_reach_the_solution_the_forms_and_the_mistakes(tiny_course: Path) -> None:
    folder = tiny_course / "reference" / "tiny"
    for name, old, new in (
        ("assignment.toml", "[[component]]", "[variant.times]\nchoices = [2, 5]\n[[component]]"),
        ("solution.py", "class Doubler", "TIMES = 2  # variant: times\n\n\nclass Doubler"),
        ("mistakes/tripled.py", "class Doubler", "WRONG = 2  # variant: times\n\n\nclass Doubler"),
        ("forms/added.py", "class Doubler", "AGAIN = 2  # variant: times\n\n\nclass Doubler"),
    ):
        path = folder / name
        path.write_text(path.read_text("utf-8").replace(old, new, 1), encoding="utf-8")
    assignment = read_assignment(folder)
    sources = {each.name: each.source for each in homework_versions(assignment, {"times": 5})}
    assert all("TIMES = 5  # variant" in source for source in sources.values())
    assert "WRONG = 5" in sources["tripled"] and "AGAIN = 5" in sources["added"]
    assert "TIMES = 2" in homework_versions(assignment)[0].source
