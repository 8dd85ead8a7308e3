"""`[variant]`: what is read from it, and the sentence for each thing that can be wrong in it."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.locate import located_course
from grader.course.variant_values import own_values, own_values_text, values_stated_in
from grader.domain.assignment_versions import DrawnValue
from grader.domain.errors import CourseError


@pytest.fixture
def tiny(tiny_course: Path) -> Path:
    """The folder of a small assignment."""
    return tiny_course / "reference" / "tiny"


def with_table(folder: Path, text: str) -> Path:
    path = folder / "assignment.toml"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{text}\n", encoding="utf-8")
    return folder


def test_what_is_stated_is_read(tiny: Path) -> None:
    tables = (
        "[variant.heads]\nchoices = [2, 4.5]\n"
        '[variant.pool]\nchoices = ["cls", "mean"]\nper = "student"\n'
        "[variant.bias]\nchoices = [true, false]\n"
        "[variant.sizes]\nchoices = [[8, 8], [], [16]]\n"
    )
    stated = read_assignment(with_table(tiny, tables)).variant
    assert stated == (
        DrawnValue("heads", (2, 4.5)),
        DrawnValue("pool", ("cls", "mean"), per_student=True),
        DrawnValue("bias", (True, False)),
        DrawnValue("sizes", ((8, 8), (), (16,))),
    )
    assert values_stated_in(tiny) == stated


def test_values_can_be_read_while_the_rest_is_unwritten(tmp_path: Path) -> None:
    (tmp_path / "assignment.toml").write_text("[variant.heads]\nchoices = [2]\n", encoding="utf-8")
    assert values_stated_in(tmp_path) == (DrawnValue("heads", (2,)),)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            '[variant.heads]\nchoices = [2]\nper = "week"',
            "[variant.heads]: 'per' is the text 'week', which is not a choice. Choose 'term' or 'student'.",
        ),
        (
            "[variant.heads]\nchoices = []",
            "[variant.heads]: 'choices' is empty but must be a list with at least one entry. Change it.",
        ),
        ("[variant.heads]\nchoice = [2]", "[variant.heads] has 'choice', which means nothing here. Did you"),
        ("[variant.heads]\nper = 'term'", "[variant.heads] lacks 'choices'. Add it."),
        (
            "[variant.heads]\nchoices = [2, 4, 2]",
            "[variant.heads]: 2 is in 'choices' twice. Write each choice",
        ),
        ("[variant.heads]\nchoices = [1, 1.0]", "[variant.heads]: 1.0 is in 'choices' twice."),
        (
            "[variant.heads]\nchoices = [2, 'a']",
            "[variant.heads]: 'choices' mixes a number and a text. Write",
        ),
        (
            "[variant.heads]\nchoices = [1, true]",
            "[variant.heads]: 'choices' mixes a number and a truth value.",
        ),
        ("[variant.heads]\nchoices = [2, [2]]", "[variant.heads]: 'choices' mixes a list and a number."),
        ("[variant.heads]\nchoices = [[2], ['a']]", "[variant.heads]: 'choices' mixes a number and a text."),
        (
            "[variant.heads]\nchoices = [nan]",
            "[variant.heads]: 'choices' has an entry that is not a finite number",
        ),
        ("[variant.heads]\nchoices = [2026-01-01]", "'choices' has an entry that is not a finite number"),
        ("[variant.heads]\nchoices = [[[2]]]", "'choices' has an entry that is not a finite number"),
        ("[variant.'a-b']\nchoices = [2]", "[variant.a-b]: 'a-b' is not a Python name. Use letters, digits"),
        ("[variant.for]\nchoices = [2]", "[variant.for]: 'for' is not a Python name."),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(tiny: Path, table: str, sentence: str) -> None:
    with pytest.raises(CourseError) as caught:
        read_assignment(with_table(tiny, table))
    assert str(caught.value).startswith("assignment.toml: ") and sentence in str(caught.value)


def test_no_check_is_called_as_the_graders_own(tiny: Path) -> None:
    checks = tiny / "checks" / "test_doubler.py"
    text = checks.read_text("utf-8").replace("test_doubler_keeps_the_shape", "test_own_values")
    checks.write_text(text, encoding="utf-8")
    read_assignment(tiny)
    with pytest.raises(CourseError, match="a check is called 'own_values', like the grader's own"):
        read_assignment(with_table(tiny, "[variant.heads]\nchoices = [2]"))


def test_a_students_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    values = {"heads": 4, "pool": "cls", "bias": True, "rate": 0.1, "sizes": (8, 8)}
    (tmp_path / "variant.json").write_text(own_values_text(values, "s1"), encoding="utf-8")
    assert own_values(tmp_path, ()) == values


@pytest.mark.parametrize(
    "text", ["", "[]", '{"values": 3}', '{"values": {"heads": {}}}', '{"heads": 4}', "\xff"]
)
def test_a_malformed_students_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "variant.json").write_text(text, encoding="latin-1")
    with pytest.raises(CourseError, match=r"^variant\.json cannot be read\. Copy it back"):
        own_values(tmp_path, ())


def test_a_students_file_is_needed_only_where_values_are_drawn(tmp_path: Path) -> None:
    assert own_values(tmp_path, ()) == {}
    with pytest.raises(CourseError, match=r"is missing in .*Copy it back from the folder"):
        own_values(tmp_path, (DrawnValue("heads", (2,)),))


def test_a_term_is_part_of_the_course(tmp_path: Path) -> None:
    settings = tmp_path / "course.toml"
    settings.write_text('title = "t"\nsecret = "s"\n', encoding="utf-8")
    assert located_course(tmp_path, environment={}).term == ""
    settings.write_text('title = "t"\nsecret = "s"\nterm = "2026/27 fall"\n', encoding="utf-8")
    assert located_course(tmp_path, environment={}).term == "2026/27 fall"
    settings.write_text('title = "t"\nsecret = "s"\nterm = "a:b"\n', encoding="utf-8")
    with pytest.raises(CourseError, match=r"^course\.toml: 'term' is 'a:b', which is not a name of a term\."):
        located_course(tmp_path, environment={})
