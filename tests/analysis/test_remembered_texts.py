"""What was found out about a short text is remembered, for the same further arguments."""

from grader.analysis.bare_text import DOCSTRINGS, BareTexts
from grader.analysis.remembered_texts import SHORT, remembered


def test_short_texts_are_asked_about_once_and_long_ones_each_time():
    asked = []

    @remembered(2)
    def length(text, times):
        asked.append(text[:1])
        return len(text) * times

    assert [length("ab", 1), length("ab", 1), length("ab", 2)] == [2, 2, 4]
    assert asked == ["a", "a"]
    long = "x" * (SHORT + 1)
    assert length(long, 1) == length(long, 1) == SHORT + 1
    assert asked == ["a", "a", "x", "x"]


def test_a_documented_function_is_cut_anew_where_less_may_be_kept():
    """Two programs hold the same function; before it, one of them has used up what docstrings may hold."""
    function = 'def f():\n    """What it does."""\n    return 1'
    texts = BareTexts()
    for number in range(3):
        text = f"w{number} " * DOCSTRINGS
        texts.text(f'def g{number}():\n    """{text}"""')
    assert "What it does." in BareTexts().text(function)
    assert "What it does." not in texts.text(function)
