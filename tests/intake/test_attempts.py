"""Of several attempts the last in time counts; what only looks alike stays."""

import os

import pytest

from grader.files.file_names import plain
from grader.intake.downloaded_files import downloaded_item, settled
from grader.intake.naming import copy_mark


@pytest.fixture
def siblings(folder):
    """Files side by side, by name -> time of modification in seconds."""

    def of(times):
        root = folder(dict.fromkeys(times, "x"))
        for name, seconds in times.items():
            os.utime(root / name, (seconds, seconds))
        return [downloaded_item(root / name, name) for name in times]

    return of


def counting(found_files):
    kept, superseded = settled(found_files)
    return {one.shown for one in kept}, {one.shown: why for one, why in superseded}


@pytest.mark.parametrize(
    ("times", "kept", "words"),
    [
        ({"1001_a.py": 9e8, "1001_a (1).py": 9e8}, {"1001_a (1).py"}, "by the mark in its name"),
        ({"1001_a.py": 9e8, "1001_a (1).py": 9e8 - 9999}, {"1001_a.py"}, "only a hint"),
        ({"a.py": 9e8, "a copy.py": 9e8 + 30}, {"a copy.py"}, "by the mark"),
        ({"a_v2.py": 9e8, "a_v10.py": 9e8, "a.py": 9e8}, {"a_v10.py"}, "by the mark"),
        ({"400101204-1.py": 9e8, "400101204-2.py": 9e8}, {"400101204-2.py"}, "by the mark"),
        (
            {"Lab8 Homework.py": 9e8, "lab8_homework.PY": 9e8},
            {"lab8_homework.PY"},
            "a person will take a look",
        ),
        ({"s_1001_2002_a.py": 9e8, "s_1001_2001_a-1.py": 9e8 + 9999}, {"s_1001_2002_a.py"}, "Canvas"),
    ],
)
def test_the_last_in_time_counts_and_what_says_so_is_told(siblings, times, kept, words):
    counts, superseded = counting(siblings(times))
    assert counts == kept and set(superseded) == set(times) - kept
    assert all(words in why and "is an earlier attempt" in why for why in superseded.values())


@pytest.mark.parametrize(
    "names",
    [
        ["part-1.py", "part-2.py"],  # parts, not attempts
        ["a.py", "a.ipynb"],
        ["model.py", "homework.py"],
        ["(1).py", "(2).py"],
    ],
)
def test_what_only_looks_alike_stays(siblings, names):
    assert counting(siblings(dict.fromkeys(names, 9e8))) == (set(names), {})


@pytest.mark.parametrize(
    ("stem", "mark"),
    [
        ("a (1)", ("a", 1)),
        ("a-12", ("a", 12)),
        ("a_v3", ("a", 3)),
        ("a attempt 2", ("a", 2)),
        ("a - Copy", ("a", 1)),
        ("a_resubmitted", ("a", 1)),
        ("a2", ("a2", 0)),
        ("cov2", ("cov2", 0)),
        ("(1)", ("(1)", 0)),
    ],
)
def test_marks_of_copies(stem, mark):
    assert copy_mark(stem) == mark


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("４００＿Ｌａｂ８．ｐｙ", "400_Lab8.py"),
        ("۴۰۰١_a.py", "4001_a.py"),
        ("\u202b400\u200c_a.py\u200f", "400_a.py"),
        ("a\u00a0 b.py", "a b.py"),
        ("گزارش.pdf", "گزارش.pdf"),
        # what would become a path, nothing, or far longer stays as it is
        ("．．／evil.py", "．．／evil.py"),
        ("．．", "．．"),
        ("\u200f", "\u200f"),
        ("\ufdfa" * 40, "\ufdfa" * 40),
    ],
)
def test_names_in_ordinary_letters(name, made):
    assert plain(name) == made
