"""Sentences find their translation, and what is not ours comes through as it was."""

import time
from dataclasses import replace

import pytest

from grader.language.sentences import marks, pattern, sentences
from grader.language.translation import BEGIN, END, ENGLISH, Language, Message


def spoken(*entries: tuple[str, str], counted: tuple[Message, ...] = ()) -> Language:
    messages = tuple(Message((english,), (other,), "{" in english) for english, other in entries)
    return Language("xx", "ltr", messages + counted, lambda number: int(number != 1))


PASSED = ("{passed} of {total} checks passed.", "<{total}/{passed}>")


def test_values_go_into_the_translation_in_its_own_order():
    assert spoken(PASSED).translated("10 of 12 checks passed.") == "<12/10>"


def test_an_exact_entry_wins():
    language = spoken(PASSED, ("0 of 12 checks passed.", "none"))
    assert language.translated("0 of 12 checks passed.") == "none"


def test_what_a_placeholder_stands_for_is_translated_if_it_is_a_sentence():
    language = spoken(
        PASSED, ("{part} has {points} of {maximum}: {reason}", "{part}={points}/{maximum}, {reason}")
    )
    assert language.translated("A has 1 of 3: 2 of 7 checks passed.") == "A=1/3, <7/2>"


def test_sentences_in_a_row_are_translated_one_by_one():
    language = spoken(PASSED, ("{part} has only {points}: {reason}", "{part}={points}, {reason}"))
    told = "A has only 1: 2 of 7 checks passed. B has only 0: 0 of 7 checks passed."
    assert language.translated(told) == "A=1, <7/2> B=0, <7/0>"


def test_clauses_that_were_added_are_translated():
    language = spoken(("{earned} of {all} points", "{earned}/{all}"), (", {rest} not run", "; -{rest}"))
    assert language.translated("5 of 10 points, 15 not run") == "5/10; -15"


def test_a_clause_without_a_value_is_translated_among_others():
    language = spoken(("rate {rate}", "r={rate}"), (", by batch", "; b"), (", {rest} left", "; -{rest}"))
    assert language.translated("rate 5, by batch, 15 left") == "r=5; b; -15"


def test_a_clause_before_others_is_translated():
    language = spoken(
        ("({added}from {low} to {high})", "({added}{low}..{high})"), ("mean of {runs} runs;", "~{runs},")
    )
    assert language.translated("(mean of 3 runs; from 1 to 2)") == "(~3, 1..2)"


def test_what_stands_in_code_stays():
    """Neither the words of a call nor the commas between its arguments are translated."""
    comma, one = ("{words}, {words_2}", "{words}; {words_2}"), ("one thing", "1")
    language = spoken(
        comma, one, ("`{call}` gives {what}.", "{what} <- `{call}`"), ("With {x}: {y}", "`{x}` {y}")
    )
    assert language.translated("`f(a, b)` gives one thing.") == "1 <- `f(a, b)`"
    assert language.translated("With a, b: one thing") == "`a, b` 1"


def test_a_list_is_not_divided_within_a_call():
    language = spoken(("{words}, {words_2}", "{words}; {words_2}"))
    assert language.translated("f(a, b)") == "f(a, b)"
    assert language.translated("f(a), b") == "f(a); b"


def test_the_most_specific_pattern_wins_whatever_the_order():
    wide, narrow = ("{what} passed.", "wide {what}"), ("All {number} checks passed.", "narrow {number}")
    assert spoken(wide, narrow).translated("All 3 checks passed.") == "narrow 3"
    assert spoken(narrow, wide).translated("All 3 checks passed.") == "narrow 3"


def test_a_number_takes_its_form():
    pages = Message(("{number}\xa0page", "{number}\xa0pages"), ("{number} one", "{number} many"), True)
    language = spoken(("It has {pages}.", "has {pages}!"), counted=(pages,))
    assert language.translated("It has 1\xa0page.") == "has 1 one!"
    assert language.translated("It has 12\xa0pages.") == "has 12 many!"
    assert language.ngettext("{number}\xa0page", "{number}\xa0pages", 5) == "{number} many"


def test_what_has_no_translation_stays_and_says_so():
    pieces = spoken(PASSED).pieces("1 of 2 checks passed. Nothing else is known.")
    assert [(piece.text.replace(BEGIN, "").replace(END, ""), piece.translated) for piece in pieces] == [
        ("<2/1>", True),
        ("Nothing else is known.", False),
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        "`{total} of 9 checks passed.`",
        "“1 of 2 checks passed. {part}”",
        "“\u202eevil\u202c {0} %(x)s”",
        "`{}{{}}`",
    ],
)
def test_what_others_wrote_is_neither_read_nor_filled_in(hostile):
    language = spoken(PASSED, ("{name} raised {problem}.", "({name}: {problem})"))
    assert language.translated(f"`f` raised {hostile}.") == f"(`f`: {hostile})"


def test_a_quotation_cannot_end_a_placeholder():
    language = spoken(("{first} is {second}", "{second} <- {first}"))
    assert language.translated("“a is b” is c") == "c <- “a is b”"


def test_private_characters_of_ours_are_not_taken_from_others():
    text = f"{BEGIN}1 of 2 checks passed."
    assert spoken(PASSED).translated(text) != "<2/1>"
    assert [piece.translated for piece in spoken(PASSED).pieces(text)] == [False]


def test_lists_are_joined_and_prose_is_not():
    language = spoken(("{words} and {last}", "{words} + {last}"), ("{words} are right.", "right: {words}"))
    assert language.translated("A, B and C are right.") == "right: A, B + C"
    told = "The softmax saturates a lot and little gradient comes through"
    assert language.translated(told) == told


def test_names_are_listed_in_the_direction_of_the_sentence():
    entry = Message(("{names} are right.",), ("{names} :ok",), True)
    persian = Language("fa", "rtl", (entry,))
    [piece] = persian.pieces("ViT, train_epoch, plt.show are right.")
    names = (f"{BEGIN}{name}{END}" for name in ("ViT", "train_epoch", "plt.show"))
    assert piece.text == "، ".join(names) + " :ok"
    assert persian.translated("“ViT, b” are right.") == "“ViT, b” :ok", "what is quoted stays as it is"
    assert replace(persian, direction="ltr").translated("a, b are right.") == "a, b :ok"


def test_matching_is_linear_in_what_a_submission_may_write():
    language = spoken(*((f"{{a}} x {{b}} x {{c}} y {{d}} {word}", "{a}") for word in "pqrstuv"))
    begun = time.perf_counter()
    language.translated(" x " * 1300)
    assert time.perf_counter() - begun < 2


def test_english_is_left_alone():
    assert ENGLISH.translated("10 of 12 checks passed.") == "10 of 12 checks passed."
    assert ENGLISH.gettext("Points") == "Points"


def test_sentences_are_divided_outside_of_quotations():
    assert sentences("One. Two! “Three. Four” five.") == ("One.", "Two!", "“Three. Four” five.")


def test_fields_beside_each_other_are_no_pattern():
    assert pattern("{first}{second}") is None
    shape = pattern("{name} at {place}")
    assert shape is not None
    assert shape.match("a at b", marks("a at b")) == {"name": "a", "place": "b"}
    assert shape.match(" at b", marks(" at b")) is None
