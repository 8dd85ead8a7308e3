"""The instructors' code with drawn values in it."""

from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.judge.course_code import CodeByValues


def test_the_code_of_a_set_of_values_is_executed_once(tiny_course: Path) -> None:
    folder = tiny_course / "reference" / "tiny"
    for name, old, new in (
        ("assignment.toml", "[[component]]", "[variant.sizes]\nchoices = [[2], [3, 4]]\n[[component]]"),
        ("solution.py", "class Doubler", "SIZES = [2]  # variant: sizes\n\n\nclass Doubler"),
        ("mistakes/tripled.py", "class Doubler", "WRONG = [2]  # variant: sizes\n\n\nclass Doubler"),
    ):
        path = folder / name
        path.write_text(path.read_text("utf-8").replace(old, new, 1), encoding="utf-8")
    code = CodeByValues(read_assignment(folder))
    code.prepare(2)
    one, other = code.of({"sizes": (2,)}), code.of({"sizes": (3, 4)})
    assert code.of({"sizes": (2,)}) is one is not other
    assert (one.SIZES, other.SIZES) == ([2], [3, 4])
    assert other.mistakes["tripled"].namespace["WRONG"] == [3, 4]
