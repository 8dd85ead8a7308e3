from datetime import UTC, datetime, timedelta, timezone

import pytest

from grader.domain import formatting


@pytest.mark.parametrize(
    ("value", "text"), [(None, "—"), (0, "0"), (41.5, "41.5"), (7.0, "7"), (1 / 3, "0.33"), (-0.001, "0")]
)
def test_points(value, text):
    assert formatting.points(value) == text


def test_percent_never_prints_an_unknown_share_as_a_number():
    assert formatting.percent(0.552) == "55.2\N{NO-BREAK SPACE}%"
    assert formatting.percent(None) == "—"
    assert formatting.percent(float("nan")) == "not a number"


def test_stamp_is_in_the_moments_own_zone():
    tehran = timezone(timedelta(hours=3, minutes=30))
    assert formatting.stamp(datetime(2026, 11, 20, 14, 5, tzinfo=tehran)) == "2026-11-20 14:05 UTC+03:30"
    assert formatting.stamp(datetime(2026, 11, 20, 14, 5, tzinfo=UTC)) == "2026-11-20 14:05 UTC"
    assert formatting.stamp(datetime(2026, 11, 20, 14, 5)) == "2026-11-20 14:05"


def test_duration_and_quantity():
    space = "\N{NO-BREAK SPACE}"
    assert formatting.duration(0.44).replace(space, " ") == "0.4 s"
    assert formatting.duration(131).replace(space, " ") == "2 min 11 s"
    assert formatting.duration(3725).replace(space, " ") == "1 h 02 min"
    assert formatting.quantity(499462) == "499,462"
    assert formatting.quantity(float("inf")) == "not finite"


def test_lists_read_as_a_sentence():
    assert formatting.listed(["a"]) == "a"
    assert formatting.listed(["a", "b", "c"]) == "a, b and c"
    assert formatting.listed(list("abcdefgh"), 6) == "a, b, c, d, e, f and 2 more"


def test_characters_that_deceive_are_shown_by_their_number():
    assert formatting.printable("a\u202eb\x1b[31m\x00\ud800") == "a⟨U+202E⟩b⟨U+001B⟩[31m⟨U+0000⟩⟨U+D800⟩"
    persian = "می\u200cخواهم"
    assert formatting.printable(persian) == persian
    assert formatting.printable("a\r\nb\tc") == "a\nb\tc"
