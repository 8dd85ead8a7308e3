"""Winnowing keeps what Schleimer, Wilkerson and Aiken promise of it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from grader.similarity.compared_pairs import STRETCH, WINDOW, fingerprints

VALUE, PLACE = 5944833845122942816, 2

rows = st.lists(st.sampled_from("abcdef"), max_size=60)


@settings(max_examples=150, deadline=None)
@given(rows, rows, st.lists(st.sampled_from("abcdef"), min_size=9, max_size=9), rows, rows)
def test_a_common_passage_of_the_guaranteed_length_is_found(before, after, common, left, right):
    """t = w + k - 1 tokens in common: at least one fingerprint in common."""
    one = {value for value, _ in fingerprints([*before, *common, *after], 6, 4)}
    other = {value for value, _ in fingerprints([*left, *common, *right], 6, 4)}
    assert one & other


@settings(max_examples=100, deadline=None)
@given(rows)
def test_every_window_has_one(row):
    """Of WINDOW neighboring stretches one is chosen, and never one that is not there."""
    places = [place for _, place in fingerprints(row, 5, 4)]
    count = len(row) - 5 + 1
    assert places == sorted(set(places))
    assert all(0 <= place < count for place in places)
    assert all(any(start <= place < start + 4 for place in places) for start in range(count - 4 + 1))
    assert bool(places) == (count > 0)


def test_the_values_are_the_same_in_every_process():
    """They are what they were when this was written."""
    row = [f"token{number}" for number in range(STRETCH + WINDOW)]
    assert fingerprints(row)[0] == (VALUE, PLACE)
