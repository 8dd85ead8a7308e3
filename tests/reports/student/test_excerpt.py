import pytest

from grader.reports.student.code_lines import excerpt, place_of

SOURCE = {
    "homework.py": "one\n    two\n        three\n    four\n    five\n    six\n    seven\n",
    "cell 4": "a\nb",
}


def test_the_named_line_is_marked_between_its_neighbors():
    lines = excerpt(SOURCE, "homework.py:3")
    assert [(line.number, line.text, line.marked) for line in lines] == [
        (2, "two", False),
        (3, "    three", True),
        (4, "four", False),
        (5, "five", False),
        (6, "six", False),
    ]


@pytest.mark.parametrize(
    ("where", "numbers"), [("homework.py:1", [1, 2, 3, 4, 5]), ("homework.py:6", [3, 4, 5, 6, 7])]
)
def test_at_either_end_there_are_still_five_lines(where, numbers):
    assert [line.number for line in excerpt(SOURCE, where)] == numbers


def test_lines_end_as_on_any_system():
    source = {"homework.py": "a\r\nb\rc\n\rd\r\r\ne\x0c\x85f"}
    lines = excerpt(source, "homework.py:3", before=2, after=5)
    assert [line.text for line in lines] == ["a", "b", "c", "", "d", "", "e⟨U+000C⟩⟨U+0085⟩f"]


def test_a_cell_of_a_notebook():
    assert [line.text for line in excerpt(SOURCE, "cell 4, line 2")] == ["a", "b"]


def test_a_cell_is_known_by_its_first_line():
    """Numbers of cells are counted in several ways: its beginning stands before the lines."""
    source = {
        "In [7], cell 9": "\n# Attention\n\nclass A:\n    v = 0\n    x = 1\n    y = 2\n    z = 3\n"
        "    s = 4\n    t = 5\n"
    }
    lines = excerpt(source, "In [7], line 7 (cell 9)")
    assert [(line.number, line.text) for line in lines] == [
        (2, "# Attention"),
        (6, "    x = 1"),
        (7, "    y = 2"),
        (8, "    z = 3"),
        (9, "    s = 4"),
        (10, "    t = 5"),
    ]
    assert [line.marked for line in lines] == [False, False, True, False, False, False]
    assert [line.number for line in excerpt(source, "In [7], line 3 (cell 9)")] == [2, 3, 4, 5, 6]


DEFINED = '''import torch

@torch.no_grad()
def mean(
    values,
):
    """What was asked for.

    At length.
    """
    # by hand
    total = 0
    for value in values:
        total += value
    return total / len(values)

print(mean([1]))
'''


def test_of_a_definition_its_body_is_shown():
    """It is named where no line of it is known to be wrong: all may be; the docstring says what was asked."""
    lines = excerpt({"homework.py": DEFINED}, "homework.py:4")
    assert [line.number for line in lines] == [4, 5, 6, 11, 12, 13, 14, 15]
    assert [line.number for line in lines if line.marked] == [4]
    shorter = excerpt({"homework.py": DEFINED}, "homework.py:4", definition=4)
    assert [line.number for line in shorter] == [4, 5, 6, 11]


def test_what_cannot_be_parsed_has_the_lines_around():
    lines = excerpt({"homework.py": "%matplotlib\n" + DEFINED}, "homework.py:5")
    assert [line.number for line in lines] == [4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    "where", ["", "homework.py", "other.py:1", "homework.py:99", "homework.py:0", "cell 4"]
)
def test_a_place_that_is_not_there_has_no_excerpt(where):
    assert excerpt(SOURCE, where) == ()
    assert excerpt(None, where) == ()


def test_an_overlong_line_is_cut():
    (line,) = excerpt({"homework.py": "x" * 5000}, "homework.py:1")
    assert len(line.text) < 200 and line.text.endswith("…")


def test_a_file_name_may_hold_a_colon():
    assert str(place_of("a:b.py:7")) == "a:b.py:7"
    assert place_of("a:b.py:7").line == 7
