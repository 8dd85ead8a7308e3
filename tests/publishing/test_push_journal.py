"""What was sent is remembered, whenever the process is killed."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.lms.online_assignment import PostedComment, Standing
from grader.publishing.push_journal import Intention, Memory, PushJournal, confirmation

WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
TARGET = ("canvas", "https://canvas.example.edu", "1201", "88")
ARRIVED = Standing(80.0, comments=(PostedComment("9", "Well done.", ("report-ab-1.html",)),))


def intention(before: Standing = Standing(), file: str = "report-ab.html") -> Intention:  # noqa: B008
    return Intention(
        student_id="1",
        points=80,
        content="c",
        comment="Well done.",
        file=file,
        before_points=before.points,
        before_version=before.version,
        before_comments=tuple(comment.key for comment in before.comments),
        at=WHEN,
        who="ta1",
    )


@pytest.fixture
def journal(tmp_path: Path) -> PushJournal:
    made = PushJournal(tmp_path, TARGET)
    with made.reserved():
        return made


def test_an_intention_is_open_until_it_is_confirmed(journal: PushJournal) -> None:
    assert journal.memories() == {}
    meant = intention()
    journal.add(meant)
    assert journal.memories() == {("", "1"): Memory(open=meant)}
    done = confirmation(meant, ARRIVED, WHEN)
    journal.add(done)
    assert journal.memories() == {("", "1"): Memory(confirmed=done)}
    journal.add(meant)
    assert journal.memories() == {("", "1"): Memory(open=meant, confirmed=done)}


def test_a_torn_line_does_not_count(journal: PushJournal) -> None:
    journal.add(intention())
    whole = journal.path.read_bytes()
    for length in range(1, len(whole)):
        journal.path.write_bytes(whole + whole[:length])
        journal.add(intention())
        assert journal.memories() == {("", "1"): Memory(open=intention())}, length


def test_a_line_that_a_full_disk_takes_in_part_is_no_promise(
    journal: PushJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grade would be sent, and nothing would tell after a crash that it was ours."""
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:20]))
        with pytest.raises(UsageError, match=r"cannot be written \(No space left on device\)"):
            journal.add(intention())
    assert journal.memories() == {}
    journal.add(intention())
    assert journal.memories() == {("", "1"): Memory(open=intention())}


def test_a_confirmation_of_an_older_journal_is_read(journal: PushJournal) -> None:
    """There, the digest of the comment was called `comment`."""
    done = confirmation(intention(), ARRIVED, WHEN)
    journal.add(done)
    lines = journal.path.read_text("utf-8")
    assert '"comment_digest":' in lines
    journal.path.write_text(lines.replace('"comment_digest":', '"comment":'), "utf-8")
    assert journal.memories() == {("", "1"): Memory(confirmed=done)}


def test_words_in_an_entry_do_not_decide_what_it_is(journal: PushJournal) -> None:
    meant = intention().model_copy(update={"who": "confirmation", "why": "intention"})
    journal.add(meant)
    assert journal.memories() == {("", "1"): Memory(open=meant)}


def test_a_line_that_somebody_changed_is_named(journal: PushJournal) -> None:
    journal.add(intention())
    journal.path.write_text(journal.path.read_text("utf-8").replace('"points":80.0', '"points":"all"'))
    with pytest.raises(UsageError, match="line 2, is not as the grader wrote it"):
        journal.memories()


def test_each_assignment_of_each_lms_has_its_own(tmp_path: Path) -> None:
    others = [
        ("moodle", *TARGET[1:]),
        ("canvas", "https://other.example.edu", *TARGET[2:]),
        (*TARGET[:3], "89"),
    ]
    assert len({PushJournal(tmp_path, target).path for target in (TARGET, *others)}) == 4


def test_only_one_push_at_a_time(journal: PushJournal) -> None:
    with (
        journal.reserved(),
        pytest.raises(UsageError, match="another push from this folder is running"),
        journal.reserved(),
    ):
        pass


@pytest.mark.parametrize(
    ("there", "arrived", "untouched"),
    [
        (Standing(), False, True),
        (ARRIVED, True, True),
        (Standing(80.0), False, True),  # the grade without its comment: both are sent again
        (Standing(80.0, is_mine=False), False, False),
        (Standing(70.0), False, False),
        (Standing(80.0, comments=(PostedComment("9", "Well done.", ("other.html",)),)), False, True),
    ],
)
def test_what_stands_there_shows_whether_it_arrived(there: Standing, arrived: bool, untouched: bool) -> None:
    assert intention().has_arrived(there) is arrived
    assert intention().left_all_as_it_was(there) is untouched


def test_a_comment_that_was_there_before_is_not_the_new_one() -> None:
    assert not intention(ARRIVED).has_arrived(ARRIVED)
    assert intention(file="").has_arrived(Standing(80.0, comments=(PostedComment("9", " Well  done.\n"),)))


def test_versions_show_it_as_well() -> None:
    meant = intention(Standing(80.0, "0@5"))
    assert not meant.has_arrived(Standing(80.0, "0@5")) and meant.left_all_as_it_was(Standing(80.0, "0@5"))
    assert meant.has_arrived(Standing(80.0, "0@6")) and not meant.left_all_as_it_was(Standing(80.0, "0@6"))
    assert not meant.has_arrived(Standing(80.0, "0@6", is_mine=False))
    done = confirmation(meant, Standing(80.0, "0@6"), WHEN)
    assert done.edit_since(Standing(80.0, "0@6")) == ""
    assert done.edit_since(Standing(80.0, "0@7")) == "somebody saved it there again"
    assert done.edit_since(Standing(None, "0@7")) == "the grade was changed there"
