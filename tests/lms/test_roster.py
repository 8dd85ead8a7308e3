"""The list of the class is read as each LMS writes it."""

from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.lms.roster import read_roster

WORKSHEET = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum grade\n"
    "Participant 11,Alpha One,400101204,alpha@uni.example,Submitted,,100\n"
    "Participant 12,Kappa Seven,,kappa@uni.example,No submission,,100\n"
    "Participant 13,,,,No submission,,100\n"
)
PARTICIPANTS = (
    "First name,Last name,ID number,Email address,Roles\n"
    "Alpha,One,400101204,alpha@uni.example,Student\n"
    "Alan,Turing,,alan@uni.example,Teacher\n"
)
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Lab 8 (77)\n"
    ",,,,,Manual Posting\n"
    "    Points Possible,,,,,100\n"
    '"One, Alpha",9001,400101204,alpha,Lab A,\n'
    '"Seven, Kappa",9002,,,Lab A,\n'
    '"Student, Test",9003,,abc,Lab A,\n'
)
GRADESCOPE = (
    "First Name,Last Name,SID,Email,Sections,Role\n"
    "Alpha,One,400101204,alpha@uni.example,,Student\n"
    "Kappa,Seven,,kappa@uni.example,,Student\n"
    "Alan,Turing,1,alan@uni.example,,TA\n"
)


def listed(folder: Path, content: str | bytes):
    path = folder / "list.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_roster(path)


@pytest.mark.parametrize(
    ("content", "ids", "own"),
    [
        (WORKSHEET, ["400101204", "kappa", "Participant_13"], True),
        (PARTICIPANTS, ["400101204"], False),
        (CANVAS, ["400101204", "9002"], True),
        (GRADESCOPE, ["400101204", "kappa"], True),
        ("student_id\n400101204\n\n400101205\n", ["400101204", "400101205"], False),
        ("\ufeffname;Student_ID\r\nAda;400101204\r\n", ["400101204"], False),
        ("name\tID number\nAda\t４００１０１２０４\n".encode("utf-16"), ["400101204"], False),
    ],
)
def test_each_lists_students_are_read_under_their_ids(tmp_path: Path, content, ids, own) -> None:
    roster = listed(tmp_path, content)
    assert list(roster.rows.values()) == ids and roster.from_lms is own


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "list.csv is not a CSV table"),
        ("name,group\nAda,1\n", "list.csv: row 1 names no column of student ids."),
        ("student_id,name\n1,Alpha\n,Kappa\n", "list.csv: row 3, column 'student_id': is empty."),
        ("student_id\n7\n8\n7\n", "list.csv: row 4, column 'student_id': '7' is in row 2 as well."),
        ("student_id\n\n", "list.csv: lists no student."),
    ],
)
def test_what_is_wrong_in_a_list_is_told_with_its_row(tmp_path: Path, content, sentence) -> None:
    with pytest.raises(UsageError) as raised:
        listed(tmp_path, content)
    assert str(raised.value).startswith(sentence)


def test_a_list_that_is_not_there_or_far_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_roster(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="larger than 10 MB"):
        listed(tmp_path, b"student_id\n" + b"1" * 10_000_000)
