"""`questions.toml`: what can never be asked is reported when the course is read."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.oral_questions import LONGEST, oral_questions
from grader.domain.assignment import Component
from grader.domain.errors import CourseError
from tests.editions import course_in_edition

PARTS = (
    Component("Doubler", "class", "dim, depth=2, *, image_size=28"),
    Component("train", "function", "model, optimizer"),
    Component("metrics", "file", ""),
)
WHOLE = """
[[question]]
id = "tokens"
component = "Doubler"
calls = ["cat"]
values = { tokens = "(image_size // dim) ** 2 + 1" }
after = ["known"]
text = \"\"\"How many tokens
    enter your {part} with {dim}?\"\"\"
note = "{tokens}."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mistakes").mkdir()
    (tmp_path / "mistakes" / "known.py").write_text('"""It is wrong."""\n')
    return tmp_path


def questions(folder: Path, text: str):  # type: ignore[no-untyped-def]
    (folder / "questions.toml").write_text(text, encoding="utf-8")
    return oral_questions(folder, PARTS)


def test_a_question_is_read(folder: Path) -> None:
    (question,) = questions(folder, WHOLE)
    assert question.text == "How many tokens enter your {part} with {dim}?"
    assert (question.component, question.calls, question.after) == ("Doubler", ("cat",), ("known",))
    assert question.values == (("tokens", "(image_size // dim) ** 2 + 1"),)


def test_an_assignment_need_not_have_any(folder: Path) -> None:
    assert oral_questions(folder, PARTS) == ()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"Doubler"', '"Dubler"', r"about 'Dubler', which is no part in code. Did you mean 'Doubler'\?"),
        ('"Doubler"', '"metrics"', r"about 'metrics', which is no part in code"),
        ('component = "Doubler"\n', "", r"has 'calls' but no 'component'"),
        ('component = "Doubler"\ncalls = ["cat"]\n', "", r"says '\{part\}' but has no 'component'"),
        ('"known"', '"nown"', r"comes after 'nown', which is not a known mistake. Did you mean 'known'\?"),
        ("{dim}", "{dimm}", r"uses 'dimm', which stands for nothing. Did you mean 'dim'\?"),
        ("{dim}", "{dim.real}", r"uses 'dim.real', which stands for nothing"),
        ("{tokens}.", "{token}.", r"uses 'token', which stands for nothing. Did you mean 'tokens'\?"),
        ("// dim", "// dimm", r"uses 'dimm', which stands for nothing"),
        ("// dim", "/ dim", r"computes 'tokens' by .*: 'image_size / dim' is none of"),
        ("// dim", "// (", r"computes 'tokens' by .*: it is not a formula. Fix it"),
        ("{ tokens", "{ part", r"computes 'part', which is taken or no name"),
        ('note = "{tokens}."', 'note = ""', r"'note' is empty but must be"),
        ('note = "{tokens}."', "", r"lacks 'note'. Add it"),
        ('note = "', 'nota = "', r"has 'nota', which means nothing here. Did you mean 'note'\?"),
        ("How many", "How " * 100, rf"has a text of \d+ characters. Shorten it to {LONGEST['text']}"),
    ],
)
def test_what_is_wrong_is_one_sentence(folder: Path, old: str, new: str, sentence: str) -> None:
    assert WHOLE.count(old) >= 1
    with pytest.raises(CourseError, match=sentence) as caught:
        questions(folder, WHOLE.replace(old, new))
    assert str(caught.value).startswith("questions.toml") and "\n" not in str(caught.value)


def test_an_id_is_there_once(folder: Path) -> None:
    with pytest.raises(CourseError, match="question 'tokens' is there twice"):
        questions(folder, WHOLE + WHOLE)


def test_students_have_none_and_grades_do_not_depend_on_them(tiny_course: Path) -> None:
    folder = tiny_course / "reference" / "tiny"
    before = read_assignment(folder)
    (folder / "questions.toml").write_text(
        '[[question]]\nid = "a"\ncomponent = "Doubler"\ntext = "Why {part}?"\nnote = "Because."\n'
    )
    after = read_assignment(folder)
    assert [question.id for question in after.oral_questions] == ["a"] and after.digest == before.digest
    (folder / "questions.toml").write_text('[[question]]\nid = "a"\n')
    with pytest.raises(CourseError, match=r"^questions.toml"):
        read_assignment(folder)


@pytest.mark.parametrize("scale", ["laptop", "gpu"])
@pytest.mark.parametrize("scope", ["core", "full"])
def test_every_edition_has_questions_about_its_own_parts(tmp_path: Path, scale: str, scope: str) -> None:
    course = course_in_edition(tmp_path, scale, scope)
    assert len(read_assignment(course / "reference" / "vit_cifar10").oral_questions) >= 10
