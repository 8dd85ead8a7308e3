"""The metadata of a Gradescope export: students chose its strings, and nothing in it does harm."""

import io
from datetime import UTC, datetime, timedelta, timezone

import pytest

from grader.domain.errors import SubmissionError
from grader.lms.gradescope import gradescope_files
from grader.lms.gradescope.gradescope_files import listed_submission, metadata_rows

WHOLE = b"""---
submission_1:
  :submitters:
  - :name: Student 17
    :sid: '400101204'
    :email: a@example.org
  - :sid: 400101205
  :created_at: 2026-01-26 03:54:49.713366000 Z
  :score: 3.0
  :results: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
    tests: &1 [1]
    again: *1
  :history:
  - :created_at: 2026-01-25 03:54:49.713366000 Z
submission_2:
  :submitters: []
  :created_at: '2026-01-26T03:54:49-08:00'
submission_3: !ruby/object:Anything
  :submitters: 5
  :created_at: soon
"""


def read(content):
    return [listed_submission(row) for row in metadata_rows(io.BytesIO(content), "submission_metadata.yml")]


def test_who_handed_in_what_and_when():
    first, second, third = read(WHOLE)
    assert (first.folder, first.students, first.earlier) == ("submission_1", ("400101204", "400101205"), 1)
    assert first.created_at == datetime(2026, 1, 26, 3, 54, 49, 713366, tzinfo=UTC)
    assert second.created_at == datetime(2026, 1, 26, 3, 54, 49, tzinfo=timezone(timedelta(hours=-8)))
    assert (third.students, third.created_at) == ((), None)


@pytest.mark.parametrize(
    "content",
    [
        b"a: [",
        b"[1, 2]",
        b"",
        b"\xff\xfe\x00",
        b"? [1]\n: 2\n",
        b"[" * 100_000,  # would use up the stack of libyaml
        b"{a: " * 100_000,
        b"a: !!python/object/apply:os.system ['touch /tmp/x']",
        b"a: 9999-99-99 99:99:99",
        b"a: 1\n" + b"".join(b"b%d: {}\n" % n for n in range(5_001)),
    ],
)
def test_what_is_not_gradescopes_gets_a_sentence(content):
    with pytest.raises(SubmissionError, match=r"submission_metadata\.yml.*: is not the list of submissions"):
        read(content)


def test_more_than_can_be_read_is_not_read(monkeypatch):
    monkeypatch.setattr(gradescope_files, "MOST_MEGABYTES", 0)
    with pytest.raises(SubmissionError, match="larger than"):
        read(WHOLE)


@pytest.mark.parametrize(
    "row", [None, [], ["a"], ["a", "b", "c", "d"], [1, [], "", 0], {"a": 1}, ["a", [], "", None]]
)
def test_a_row_that_makes_no_sense_is_left_out(row):
    assert listed_submission(row) is None
