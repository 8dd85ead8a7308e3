"""The generated class of honest students is the same each time, complete, and made of readable files."""

import ast
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generated  # type: ignore[import-not-found]
import nbformat


@pytest.fixture(scope="module")
def members():
    return generated.students(100, 1)


@pytest.fixture(scope="module")
def texts(members):
    return {f"{member.student_id}.{member.kind}": generated.source(member) for member in members}


def test_the_same_class_each_time(members, texts, tmp_path):
    again = generated.students(100, 1)
    assert again == members
    assert {f"{m.student_id}.{m.kind}": generated.source(m) for m in again} == texts
    files = generated.write(tmp_path, members[:3])
    for file, member in zip(files, members, strict=False):
        assert file.read_bytes() == generated.source(member).encode()
        assert file.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


def test_another_seed_gives_another_class(members):
    other = generated.students(100, 2)
    assert not {m.student_id for m in other} & {m.student_id for m in members}
    assert [m.choices for m in other] != [m.choices for m in members]


def test_every_piece_occurs(members):
    counted = Counter(piece for member in members for piece in member.pieces())
    assert [piece for piece in generated.all_pieces() if not counted[piece]] == []
    assert len(members) == len({m.student_id for m in members}) == 100


def test_no_two_are_alike(texts):
    assert len({hashlib.sha256(text.encode()).hexdigest() for text in texts.values()}) == 100


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_file_can_be_compiled(seed):
    for member in generated.students(100, seed):
        name = f"{member.student_id}.{member.kind}"
        code = generated.python_text(name, generated.source(member))
        tree = ast.parse(code, name)
        compile(tree, name, "exec", dont_inherit=True)
        defined = {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
        assert defined >= {*generated.GRADED, *generated.PLOTS}, name


def test_no_mark_is_left_over(texts):
    for name, text in texts.items():
        for mark in [*generated.NAME_MARKS, "STEP__", "KW__", "DEV__", "V_DIM__", "ROOT__", "ID__", "#@"]:
            assert mark not in text, (name, mark)


def test_notebooks_are_valid(texts):
    for name, text in texts.items():
        if name.endswith(".ipynb"):
            nbformat.validate(json.loads(text))


def test_a_small_class_can_be_made():
    assert len(generated.students(5, 3)) == 5
