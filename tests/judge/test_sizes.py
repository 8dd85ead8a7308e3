"""What a wrong size is made of, in words."""

import pytest

from grader.judge.checked_component import wrong_size_in_words

SIZES = {"dim": 22, "heads": 5, "dim_head": 3, "depth": 1}


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ((2, 6, 15), "Axis 2 has 15 = heads * dim_head values; it should have 22 = dim."),
        ((2, 6, 3), "Axis 2 has 3 = dim_head values; it should have 22 = dim."),
        ((2, 5, 22), "Axis 1 has 5 = heads values; it should have 6."),
        ((2, 6, 17), ""),  # nothing comes to it
        ((2, 1, 22), ""),  # whatever is one comes to it
        ((2, 22), ""),
    ],
)
def test_a_wrong_size_is_told_as_what_it_is_made_of(found: tuple[int, ...], says: str) -> None:
    assert wrong_size_in_words(found, (2, 6, 22), SIZES) == says


def test_where_two_products_come_to_it_nothing_is_said() -> None:
    assert wrong_size_in_words((2, 12), (2, 22), {"dim": 22, "heads": 3, "width": 4}) != ""
    assert wrong_size_in_words((2, 12), (2, 22), {"heads": 3, "width": 4, "depth": 2, "rank": 6}) == ""
    assert wrong_size_in_words((2, 4), (2, 22), {"heads": 4, "width": 4}) == ""
