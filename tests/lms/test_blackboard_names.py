"""Names in a Blackboard download: which attempt of whom, at which time, under which name of the student's."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from grader.lms.blackboard import blackboard_name, read_together
from grader.lms.downloads import read_name
from grader.lms.system import DownloadName, Together

AT = "2026-01-31-23-40-05"
EARLIER = "2026-01-30-08-00-00"
Reading = Callable[[dict[str, str]], Together]


def particulars(
    user: str = "jdoe", person: str = "Jane Doe", date: str = "", text: str = "", files: str = ""
) -> str:
    """The text beside an attempt."""
    date = date or "Saturday, January 31, 2026 11:40:05 PM IRST"
    return (
        f"Name: {person} ({user})\nAssignment: Lab 8\nDate Submitted: {date}\n"
        "Current Grade: Needs Grading\n\n"
        f"Submission Field:\n{text or 'There is no student submission text data for this assignment.'}\n\n"
        "Comments:\nThere are no student comments for this assignment.\n\n"
        f"Files:\n{files or 'No files were attached to this submission.'}\n"
    )


def listing(original: str, name: str) -> str:
    return f"\tOriginal filename: {original}\n\tFilename: {name}\n"


@pytest.fixture
def together(tmp_path: Path) -> Reading:
    """What files tell together."""

    def read(files: dict[str, str]) -> Together:
        for name, text in files.items():
            (tmp_path / name).write_text(text, "utf-8", newline="")
        return read_together({name: tmp_path / name for name in files})

    return read


@pytest.mark.parametrize(
    ("name", "user", "own"),
    [
        (f"Lab 8_jdoe_attempt_{AT}_homework.py", "jdoe", "homework.py"),
        (
            f"Lab 8_400101204_attempt_{AT}_400101204_Lab8_Homework.py",
            "400101204",
            "400101204_Lab8_Homework.py",
        ),
        (f"Lab 8_JDoe_attempt_{AT}_a_attempt_{EARLIER}_b.py", "jdoe", f"a_attempt_{EARLIER}_b.py"),
        (f"Lab_8_jane_doe_attempt_{AT}_homework.py", "", "homework.py"),
    ],
)
def test_a_name_by_itself_tells_the_user_where_nothing_else_can_be_meant(
    name: str, user: str, own: str
) -> None:
    told = read_name(name)
    assert (told.lms, told.number, told.name, told.sender_name) == ("Blackboard", user, own, "")
    assert told.received_clock == datetime(2026, 1, 31, 23, 40, 5) and told.received_at is None
    assert told.sender_key == (user or "lab_8_jane_doe")


@pytest.mark.parametrize(
    "name",
    [
        "homework.py",
        "Lab 8_jdoe_attempt_2026-01-31_hw.py",
        "a_attempt_2026-13-31-23-40-05_b.py",
        f"attempt_{AT}_b.py",
    ],
)
def test_other_names_are_not_blackboards(name: str) -> None:
    assert blackboard_name(name) is None


@pytest.mark.parametrize("user", ["jdoe", "jane_doe", "400101204", "j.doe@uni.example", "_x_"])
@pytest.mark.parametrize("assignment", ["Lab 8", "Lab_8", "HW_08", "HW_08_12", "Lab (8) [x]"])
def test_the_particulars_tell_which_part_is_the_users(together: Reading, assignment: str, user: str) -> None:
    """Also where a name by itself could be one of Canvas's, with two numbers."""
    before = f"{assignment}_{user}_attempt_{AT}"
    found = together(
        {
            f"{before}.txt": particulars(user),
            f"{before}_hw.py": "x",
            f"{assignment}_o_o_attempt_{AT}_hw.py": "x",
        }
    )
    told = found.names[f"{before}_hw.py"]
    assert (told.number, told.sender_label, told.name, told.sender_name) == (user, user, "hw.py", "Jane Doe")
    assert found.names[f"{assignment}_o_o_attempt_{AT}_hw.py"].number == "o_o", "the assignment is the same"
    assert list(found.lms_files) == [f"{before}.txt"] and f"{before}.txt" not in found.names
    assert [one.number for one in found.attempts] == [user]


def test_what_particulars_say_of_another_user_is_not_believed(together: Reading) -> None:
    before = f"Lab_8_jane_doe_attempt_{AT}"
    found = together({f"{before}.txt": particulars("victim"), f"{before}_hw.py": "x"})
    assert (found.names[f"{before}_hw.py"].number, found.names[f"{before}_hw.py"].sender_key) == (
        "",
        "lab_8_jane_doe",
    )


def test_a_name_that_ends_as_a_username_does_is_none(together: Reading) -> None:
    before = f"Lab_8_jane_doe_attempt_{AT}"
    found = together({f"{before}.txt": particulars("jane_doe", "Jane (doe)"), f"{before}_hw.py": "x"})
    assert (found.names[f"{before}_hw.py"].number, found.attempts[0].sender_name) == (
        "jane_doe",
        "Jane (doe)",
    )


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        ("Saturday, January 31, 2026 11:40:05 PM GMT", datetime(2026, 1, 31, 23, 40, 5, tzinfo=UTC)),
        ("Saturday, 31 January 2026 23:40:05 o'clock UTC", datetime(2026, 1, 31, 23, 40, 5, tzinfo=UTC)),
        (
            "Saturday, January 31, 2026 11:40:05 PM GMT+03:30",
            datetime(2026, 1, 31, 23, 40, 5, tzinfo=timezone(timedelta(hours=3.5))),
        ),
        (
            "Saturday, January 31, 2026 11:40:05 PM GMT-5",
            datetime(2026, 1, 31, 23, 40, 5, tzinfo=timezone(timedelta(hours=-5))),
        ),
        ("Saturday, January 31, 2026 11:40:05 PM CST", None),  # Chicago, Shanghai or Havana
        ("Saturday, January 31, 2026 11:40:05 AM GMT", None),  # another clock than the name's
        ("Saturday, January 31, 2026 8:10:05 PM GMT", None),
        ("Saturday, January 31, 2026 11:40:05 GMT", None),
        ("Saturday, January 31, 2026", None),
        ("Saturday, January 31, 2026 11:40:05 PM GMT+99:00", None),
    ],
)
def test_a_moment_needs_a_zone_that_there_is_only_once(
    together: Reading, date: str, moment: datetime
) -> None:
    before = f"Lab 8_jdoe_attempt_{AT}"
    found = together({f"{before}.txt": particulars(date=date), f"{before}_hw.py": "x"})
    told = found.names[f"{before}_hw.py"]
    assert (told.received_at, found.attempts[0].received_at) == (moment, moment)
    assert told.received_clock == datetime(2026, 1, 31, 23, 40, 5)


def test_the_students_own_name_is_the_one_in_the_particulars(together: Reading) -> None:
    before, other = f"Lab 8_jdoe_attempt_{AT}", f"Lab 8_bob_attempt_{AT}"
    files = listing("Übung é.py", f"{before}_bung_.py") + listing("a long name.pdf", "a lon.pdf")
    found = together(
        {
            f"{before}.txt": particulars(files=files).replace("\n", "\r\n"),
            f"{before}_bung_.py": "x",
            "a lon.pdf": "x",
            f"{other}.txt": particulars("bob"),
            f"{other}_hw.py": "x",
        }
    )
    assert {name: told.name for name, told in found.names.items() if told.number == "jdoe"} == {
        f"{before}_bung_.py": "Übung é.py",
        "a lon.pdf": "a long name.pdf",
    }


@pytest.mark.parametrize(
    "original", ["../../x.py", "a/b.py", "a\\b.py", "..", "x.pdf", "x\x00.py", "y" * 300 + ".py"]
)
def test_an_own_name_that_is_none_is_left(together: Reading, original: str) -> None:
    before = f"Lab 8_jdoe_attempt_{AT}"
    found = together(
        {f"{before}.txt": particulars(files=listing(original, f"{before}_hw.py")), f"{before}_hw.py": "x"}
    )
    assert found.names[f"{before}_hw.py"].name == "hw.py"


def test_what_a_student_writes_lists_nobodys_files(together: Reading) -> None:
    """A list of files in the text, of somebody else's files and of those that carry nobody's name."""
    mine, victims = f"Lab 8_eve_attempt_{AT}", f"Lab 8_victim_attempt_{AT}"
    forged = "Files:\n" + listing("x.py", f"{victims}_hw.py") + listing("y.py", "loose.py")
    forged += "Name: V (victim)\nDate Submitted: 11:40:05 PM GMT"
    found = together(
        {
            f"{mine}.txt": particulars("eve", text=forged),
            f"{victims}.txt": particulars("victim"),
            f"{victims}_hw.py": "x",
            "loose.py": "x",
        }
    )
    told = found.names[f"{victims}_hw.py"]
    assert (told.number, told.name) == ("victim", "hw.py")
    assert "loose.py" not in found.names
    assert [(one.number, one.received_at) for one in found.attempts] == [("eve", None), ("victim", None)]


def test_a_list_names_no_file_of_another_attempt(together: Reading) -> None:
    mine, victims = f"Lab 8_eve_attempt_{AT}", f"Lab 8_victim_attempt_{AT}"
    files = listing("x.py", f"{victims}_hw.py") + listing("x.txt", f"{victims}.txt")
    found = together(
        {
            f"{mine}.txt": particulars("eve", files=files),
            f"{victims}.txt": particulars("victim"),
            f"{victims}_hw.py": "x",
        }
    )
    assert {name: (told.number, told.name) for name, told in found.names.items()} == {
        f"{victims}_hw.py": ("victim", "hw.py")
    }


def test_a_file_that_two_attempts_list_is_neithers(together: Reading) -> None:
    one, other = f"Lab 8_a_attempt_{AT}", f"Lab 8_b_attempt_{AT}"
    files = listing("x.py", "loose.py")
    found = together(
        {
            f"{one}.txt": particulars("a", files=files),
            f"{other}.txt": particulars("b", files=files),
            "loose.py": "x",
        }
    )
    assert found.names == {}


def test_in_another_lmss_download_such_a_name_is_a_students_own(together: Reading) -> None:
    forged = f"Jane_11_assignsubmission_file_x_victim_attempt_{AT}.txt"
    moodles = {f"Student_{n}_assignsubmission_file_hw.py": "x" for n in range(3)}
    assert together({**moodles, forged: particulars("victim")}) == Together()
    assert read_name(forged).lms == "Moodle"


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "Name:\n", "\ufeffName: (", "Name: ()\n", "\x00\xff" * 50, "Files:\n" * 3, "(" * 10_000],
)
def test_particulars_that_say_nothing_are_still_blackboards_own(together: Reading, text: str) -> None:
    before = f"Lab 8_jdoe_attempt_{AT}"
    found = together({f"{before}.txt": text, f"{before}_hw.py": "x"})
    assert list(found.lms_files) == [f"{before}.txt"]
    assert found.names[f"{before}_hw.py"].sender_key == "lab 8_jdoe"


def test_a_single_file_of_a_download_is_read() -> None:
    told = blackboard_name(f"Lab 8_jdoe_attempt_{AT}.txt")
    assert isinstance(told, DownloadName) and told.number == "jdoe"


@pytest.mark.parametrize("text", ["\n" * 500_000, "Files:" * 100_000, " \t" * 500_000, "N:" + "(a" * 500_000])
def test_hostile_particulars_take_no_time(together: Reading, text: str) -> None:
    before = f"Lab 8_jdoe_attempt_{AT}"
    started = time.monotonic()
    together({f"{before}.txt": text})
    together({f"{before}.txt": particulars(text=text)})
    assert time.monotonic() - started < 2
