"""Mentions of a person are found as LMSs and students write them, and nothing else is."""

import pytest

from grader.domain.mentions import Mentions

HERS = Mentions(frozenset({"400101204", "7"}), frozenset({"Jane van Doe", "Ann"}), frozenset({"400101205"}))


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("400101204_Lab8.py", "forgotten_Lab8.py"),
        ("۴۰۰۱۰۱۲۰۴ and ٤٠٠١٠١٢٠٤", "forgotten and forgotten"),
        ("by Doe, Jane van; janevandoe_12", "by forgotten; forgotten_12"),
        ("JANE VAN DOE's", "forgotten's"),
        ("Jane_van_Doe-1", "forgotten-1"),
        ("7", "forgotten"),
        ("Ann", "forgotten"),
    ],
)
def test_a_mention_becomes_a_word(text: str, without: str) -> None:
    assert HERS.are_in(text) and HERS.replaced(text) == without


@pytest.mark.parametrize("text", ["14001012045", "17 of 77", "Annual", "Jane", "400101205", "x7y"])
def test_what_is_not_the_person_stays(text: str) -> None:
    assert not HERS.are_in(text) and HERS.replaced(text) == text


@pytest.mark.parametrize("page", ["<p>Siobh\u00e1n O&#39;Brien</p>", "<p>Siobha\u0301n O&#x27;Brien</p>"])
def test_a_name_is_found_as_pages_and_other_systems_write_it(page: str) -> None:
    """Our own pages escape an apostrophe in another way than Python does; some systems split accents off."""
    assert Mentions(frozenset(), frozenset({"Siobh\u00e1n O'Brien"})).replaced(page) == "<p>forgotten</p>"


def test_a_short_number_is_not_found_in_a_digest() -> None:
    short = Mentions(frozenset({"12345"}))
    assert not short.are_in("ab12345cd") and short.are_in("s 12345.")


def test_paths_and_bytes() -> None:
    assert HERS.are_in_path("a/7/b.py") and HERS.are_in_path("a/7.json") and not HERS.are_in_path("a/77/b")
    assert HERS.are_in_bytes("Jane van Doe".encode("utf-16-le")) and not HERS.are_in_bytes(b"7")
    assert HERS.names_others("400101205 too") and not HERS.names_others("400101204")
