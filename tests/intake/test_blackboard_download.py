"""A Blackboard download: the last attempt counts, and the texts beside attempts are nobody's files."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.domain.assignment import Assignment
from grader.domain.submission import Fate
from grader.files.file_names import sanitized
from grader.intake import KnownOwners, Uploads, submissions
from grader.intake.downloaded_files import totals
from grader.lms.roster import Directory, ListedStudent

FIRST, LAST = "2026-01-30-08-00-00", "2026-01-31-23-40-05"
Folder = Callable[[dict[str, str]], Path]
Read = Callable[..., Uploads]


def text(user: str, date: str = "Saturday, January 31, 2026 11:40:05 PM IRST") -> str:
    return (
        f"Name: Student {user} ({user})\nAssignment: Lab 8\nDate Submitted: {date}\n"
        "Current Grade: Needs Grading\n\nSubmission Field:\nnone\n\nComments:\nnone\n\nFiles:\n"
    )


def attempt(user: str, at: str, *own: str, assignment: str = "Lab_8", **told: str) -> dict[str, str]:
    """The files of an attempt, and its text."""
    before = f"{assignment}_{user}_attempt_{at}"
    return {
        f"{before}.txt": text(user, **told),
        **{f"{before}_{name}": f"{user} {at} {name}" for name in own},
    }


@pytest.fixture
def read(folder: Folder, assignment: Assignment, tmp_path: Path) -> Read:
    """The submissions of a download."""

    def made(*attempts: dict[str, str], known: KnownOwners | None = None, **changes: object) -> Uploads:
        root = folder({name: content for one in attempts for name, content in one.items()})
        own = replace(assignment, **changes) if changes else assignment
        return submissions(root, own, tmp_path / "scratch", known=known or KnownOwners())

    return made


def test_each_users_files_are_theirs_and_the_texts_nobodys(read: Read) -> None:
    uploads = read(
        attempt("jane_doe", LAST, "400101204_Lab8_Homework.py", "400101204_Lab8_Homework.pdf"),
        attempt("400101205", LAST, "homework.py"),
    )
    found = {one.student_id: [file.name for file in one.files] for one in uploads.submissions}
    assert found == {
        "400101204": ["400101204_Lab8_Homework.pdf", "400101204_Lab8_Homework.py"],
        "blackboard-400101205": ["homework.py"],
    }
    origin = uploads.submissions[0].origin
    assert (origin.lms, origin.number, origin.person) == ("Blackboard", "jane_doe", "Student jane_doe")
    assert uploads.unmatched == () and totals(uploads.account)[Fate.MATCHED] == 5
    texts = [one for one in uploads.account if one.name.endswith(".txt")]
    assert [one.student_id for one in texts] == [None, None]
    assert all("was read: it says who handed in an attempt, and when." in one.reason for one in texts)


def test_the_last_attempt_counts_whole(read: Read) -> None:
    """Also where its files have other names, and fewer of them."""
    uploads = read(
        attempt("jdoe", FIRST, "400101204_Lab8_Homework.py", "old.pth", "notes.pdf"),
        attempt("jdoe", LAST, "400101204_Lab8_Homework.ipynb"),
    )
    (one,) = uploads.submissions
    assert [file.name for file in one.files] == ["400101204_Lab8_Homework.ipynb"]
    assert totals(uploads.account)[Fate.SUPERSEDED] == 3
    assert [file.reason for file in one.set_aside] == [
        f"{name}: belongs to an earlier attempt. What counts is the one from 2026-01-31 23:40:05, "
        "which Blackboard received later."
        for name in ("400101204_Lab8_Homework.py", "notes.pdf", "old.pth")
    ]


def test_an_attempt_without_files_counts_too_and_is_not_lost(read: Read) -> None:
    uploads = read(
        attempt("jdoe", FIRST, "400101204_Lab8_Homework.py"), attempt("jdoe", LAST), attempt("bob", FIRST)
    )
    assert {one.student_id: one.files for one in uploads.submissions} == {
        "blackboard-bob": (),
        "blackboard-jdoe": (),
    }
    assert totals(uploads.account)[Fate.SUPERSEDED] == 1


def test_a_list_of_the_class_tells_who_a_user_is(read: Read) -> None:
    listed = {"jane_doe": ListedStudent("400101204", sure=True), "bob": ListedStudent("400101205", sure=True)}
    uploads = read(
        attempt("jane_doe", LAST, "400101205_Lab8_Homework.py"),
        attempt("bob", LAST, "400101205_Lab8_Homework.py"),
        known=KnownOwners(Directory("Blackboard", listed)),
    )
    assert [(one.student_id, one.origin.number, one.held) for one in uploads.submissions] == [
        ("400101204", "jane_doe", ""),
        ("400101205", "bob", ""),
    ]
    assert "Files are named for 400101205" in uploads.submissions[0].notes[0]


def test_two_users_with_one_id_in_their_files_are_held(read: Read) -> None:
    uploads = read(
        attempt("jane_doe", LAST, "400101205_Lab8_Homework.py"),
        attempt("j.doe", LAST, "400101205_Lab8_Homework.py"),
        attempt("j_doe", LAST, "400101205_Lab8_Homework.py"),
    )
    ids = [one.student_id for one in uploads.submissions]
    assert all(one.held for one in uploads.submissions) and len(set(ids)) == 3
    assert {"blackboard-jane_doe", "blackboard-j_doe"} < set(ids)
    assert ids == [sanitized(one) for one in ids], "each becomes the name of a folder"


def test_a_moment_with_a_sure_zone_is_when_it_came(read: Read) -> None:
    uploads = read(attempt("jdoe", LAST, "hw.py", date="Saturday, January 31, 2026 11:40:05 PM GMT+03:30"))
    assert uploads.submissions[0].received_at == datetime(2026, 1, 31, 20, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "late"), [(-3, False), (0, False), (-0.5, False), (0.5, False), (0.7, True), (3, True)]
)
def test_a_time_without_its_zone_is_a_hint_and_late_only_where_it_is_so_anywhere(
    read: Read, days: float, late: bool
) -> None:
    """14 hours east of Greenwich a clock shows a time first."""
    deadline = datetime(2026, 1, 31, 23, 40, 5, tzinfo=UTC) - timedelta(days=days)
    (one,) = read(attempt("jdoe", LAST, "hw.py"), deadline=deadline).submissions
    assert one.received_at is None and one.delivery.marked_late is late
    assert one.delivery.hinted_at == datetime(2026, 1, 31, 23, 40, 5, tzinfo=UTC)
    assert one.delivery.hint == "the time that Blackboard tells without its zone"


@pytest.mark.parametrize(("at", "user"), [(FIRST, "jdoe"), (LAST, "jdoe"), (LAST, "JDoe")])
def test_an_upload_is_the_users_in_every_download(read: Read, at: str, user: str) -> None:
    assert read(attempt(user, at, "400101204_Lab8_Homework.py")).keys == {"Blackboard:jdoe"}


def test_a_students_own_archive_tells_no_other_user(read: Read, zipped: Callable[..., bytes]) -> None:
    inside = {f"Lab_8_victim_attempt_{LAST}.txt": text("victim"), f"Lab_8_victim_attempt_{LAST}_hw.py": "x"}
    uploads = read(
        {f"Lab_8_eve_attempt_{LAST}_all.zip": zipped(inside)},  # type: ignore[dict-item]
        attempt("eve", LAST),
        attempt("bob", LAST, "hw.py"),
    )
    assert [one.origin.number for one in uploads.submissions] == ["bob", "eve"]


def test_up_to_a_moment_the_attempts_before_it_count(
    folder: Folder, assignment: Assignment, tmp_path: Path
) -> None:
    """A resubmission needs both: the last attempt before the deadline, and the last of all."""
    told = {"date": "Friday, January 30, 2026 8:00:00 AM GMT"}
    files = {
        **attempt("jdoe", FIRST, "400101204_Lab8_Homework.py", **told),
        **attempt(
            "jdoe", LAST, "400101204_Lab8_Homework.py", date="Saturday, January 31, 2026 11:40:05 PM GMT"
        ),
    }
    root, until = folder(files), datetime(2026, 1, 31, 12, tzinfo=UTC)
    (last,) = submissions(root, assignment, tmp_path / "all").submissions
    (first,) = submissions(root, assignment, tmp_path / "first", until=until).submissions
    assert (first.received_at, last.received_at) == (
        datetime(2026, 1, 30, 8, tzinfo=UTC),
        datetime(2026, 1, 31, 23, 40, 5, tzinfo=UTC),
    )
    assert first.digest != last.digest and first.origin.key == last.origin.key
