"""Versions of a homework: other versions of parts, put into the reference."""

from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import Kind, composed, first_sentence, homework_versions

HOMEWORK = """\
import math


@decorated
class Part:
    value = 1


def run():
    return Part


result = run()
"""


def test_a_part_takes_the_place_of_the_homeworks() -> None:
    """With what stands before it, and what follows the last; decorators go with their part."""
    part = (
        '"""Words."""\nimport os\n\n\ndef helper():\n    ...\n\n\nclass Part:\n    value = 2\n\n\nlast = 3\n'
    )
    text = composed(HOMEWORK, part)
    order = ["import math", "import os", "def helper", "value = 2", "last = 3", "def run", "result = run()"]
    assert [text.index(piece) for piece in order] == sorted(text.index(piece) for piece in order)
    assert "value = 1" not in text and "@decorated" not in text


def test_a_part_may_derive_from_the_homeworks() -> None:
    text = composed(HOMEWORK, "class Part(Part):\n    value = 2\n", after=True)
    assert text.index("value = 1") < text.index("class Part(Part)") < text.index("def run")


def test_several_parts_and_what_the_homework_lacks() -> None:
    text = composed(HOMEWORK, "def run():\n    return 5\n\n\nclass Part: ...\n")
    assert "return 5" in text and "class Part: ..." in text and "value = 1" not in text
    assert composed(HOMEWORK, "def other(): ...\n").rstrip().endswith("def other(): ...")


def test_the_first_sentence_of_a_docstring() -> None:
    text = "It divides by sqrt(d), i.e. too\nmuch. The formula is x.y / z.\n\nDivide. Once."
    assert first_sentence(text) == "It divides by sqrt(d), i.e. too much."
    assert first_sentence("No full stop") == "No full stop"


def test_the_versions_of_a_homework(tiny_course: Path) -> None:
    found = homework_versions(read_assignment(tiny_course / "reference" / "tiny"))
    assert [(each.kind, each.name, each.parts) for each in found] == [
        (Kind.REFERENCE, "reference", ()),
        (Kind.TEMPLATE, "template", ()),
        (Kind.FORM, "added", ("Doubler",)),
        (Kind.MISTAKE, "tripled", ("Doubler",)),
    ]
    reference, template, form, mistake = found
    assert "# >>>" not in reference.source and "2 * x" in reference.source
    assert "NotImplementedError" in template.source and "2 * x" not in template.source
    assert "x + x" in form.source and "2 * x" not in form.source
    assert "2 * x" in mistake.source and "class Doubler(Doubler)" in mistake.source
    assert mistake.says == "The input is tripled."


def test_a_form_may_derive_from_the_part_as_a_mistake_may(tiny_course: Path) -> None:
    """Instead of a NameError, as the part that it derives from would be gone."""
    folder = tiny_course / "reference" / "tiny"
    text = '"""It says more."""\n\n\nclass Doubler(Doubler):\n    words = "more"\n'
    (folder / "forms" / "derived.py").write_text(text)
    [source] = [each.source for each in homework_versions(read_assignment(folder)) if each.name == "derived"]
    assert source.index("2 * x") < source.index("class Doubler(Doubler):\n    words")
