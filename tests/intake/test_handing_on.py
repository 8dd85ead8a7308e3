"""What one member of a group handed in is handed on, where a file says who works together."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from grader.domain.assignment import Assignment
from grader.domain.submission import RecordedUpload
from grader.domain.term_total import GroupMember
from grader.intake.upload import KnownOwners, Uploads, submissions
from grader.lms.roster import Directory, ListedStudent

FIRST, SECOND, THIRD, ALONE = (f"40010120{number}" for number in (4, 5, 6, 9))
Made = Callable[..., Uploads]


def groups(*members: tuple[str, str, bool]) -> Mapping[str, tuple[GroupMember, ...]]:
    """Of (student, group, whether that one hands in)."""
    by_group: dict[str, list[GroupMember]] = {}
    for student, group, hands_in in members:
        by_group.setdefault(group, []).append(GroupMember(student, group, hands_in=hands_in))
    return {one.student_id: tuple(by_group[one.group]) for of in by_group.values() for one in of}


PAIR = groups((FIRST, "G1", False), (SECOND, "G1", False))


def code(student: str) -> str:
    return f"{student}_Lab8_Homework.py"


@pytest.fixture
def taken(folder: Callable[..., Path], assignment: Assignment, tmp_path: Path) -> Made:
    """`taken(files, groups)`: the submissions of a folder of files."""

    def made(
        files: Mapping[str, str], known: Mapping[str, tuple[GroupMember, ...]], **more: object
    ) -> Uploads:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        owners = KnownOwners(groups=known, **more)  # type: ignore[arg-type]
        return submissions(folder(files), assignment, scratch, known=owners)

    return made


def by_student(uploads: Uploads) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {one.student_id: (one.digest, one.team) for one in uploads.submissions}


def recorded(uploads: Uploads) -> list[RecordedUpload]:
    """What the gradebook knows after a download."""
    return [
        RecordedUpload(one.student_id, one.student_id, one.origin, one.digest, held=bool(one.held))
        for one in uploads.submissions
    ]


def test_all_members_have_the_submission_of_the_one_who_sent_it(taken: Made) -> None:
    uploads = taken({code(FIRST): "a = 1", code(ALONE): "b = 2"}, PAIR)
    found = by_student(uploads)
    assert set(found) == {FIRST, SECOND, ALONE}
    assert found[FIRST] == found[SECOND] and found[FIRST][1] == (FIRST, SECOND)
    assert found[ALONE][1] == ()
    assert uploads.notes[0].startswith("What one member handed in counts for the group: 1\xa0submission")
    assert all(not one.held and not one.notes for one in uploads.submissions), "no word of foreign names"
    [file] = [one for one in uploads.account if code(FIRST) in one.name]
    assert file.student_id == FIRST, "the file stays the sender's"


def test_a_sender_whose_zeros_a_spreadsheet_dropped_is_in_the_group(taken: Made) -> None:
    sent = f"00{FIRST}"
    uploads = taken({code(sent): "a = 1"}, PAIR)
    found = by_student(uploads)
    assert set(found) == {sent, SECOND} and found[sent][1] == (sent, SECOND)


def test_the_same_download_again_finds_the_same_owners(taken: Made) -> None:
    first = taken({code(FIRST): "a = 1"}, PAIR)
    again = taken({code(FIRST): "a = 1"}, PAIR, uploads=recorded(first))
    assert by_student(again) == by_student(first) and again.moved == ()
    assert [one.origin for one in again.submissions] == [one.origin for one in first.submissions]


def test_what_was_packed_anew_is_still_the_groups(taken: Made, folder: Callable[..., Path]) -> None:
    """The copies that were handed on are no further uploads with the same files."""
    first = taken({f"delta/{code(FIRST)}": "a = 1", "delta/x.txt": "", code(ALONE): "b = 2"}, PAIR)
    shutil.rmtree(folder({}))
    files = {f"delta m/{code(FIRST)}": "a = 1", "delta m/x.txt": "", code(ALONE): "b = 2"}
    again = taken(files, PAIR, uploads=recorded(first))
    assert by_student(again) == by_student(first)
    assert again.moved == () and not any(one.held for one in again.submissions)


def test_who_sent_the_same_is_in_no_need_of_it_and_a_third_gets_it(taken: Made) -> None:
    three = groups((FIRST, "G1", False), (SECOND, "G1", False), (THIRD, "G1", False))
    uploads = taken({f"{FIRST}/homework.py": "a = 1", f"{SECOND}/homework.py": "a = 1"}, three)
    found = by_student(uploads)
    assert set(found) == {FIRST, SECOND, THIRD} and len({digest for digest, _ in found.values()}) == 1
    assert found[THIRD][1] == (FIRST, THIRD), "it is the first one's, by id"


def test_of_different_work_nothing_is_guessed(taken: Made) -> None:
    three = groups((FIRST, "G1", False), (SECOND, "G1", False), (THIRD, "G1", False))
    uploads = taken({code(FIRST): "a = 1", code(SECOND): "a = 2"}, three)
    assert set(by_student(uploads)) == {FIRST, SECOND}
    [note] = [one for one in uploads.notes if one.startswith("G1:")]
    assert "each is graded by itself" in note and f"{THIRD} have none: say whose counts" in note


def test_the_same_work_under_each_ones_own_name_is_the_same(taken: Made) -> None:
    """As the handout asks for the names."""
    three = groups((FIRST, "G1", False), (SECOND, "G1", False), (THIRD, "G1", False))
    uploads = taken({code(FIRST): "a = 1", code(SECOND): "a = 1"}, three)
    found = by_student(uploads)
    assert set(found) == {FIRST, SECOND, THIRD} and found[THIRD][0] == found[FIRST][0]
    assert len(uploads.notes) == 1, "nothing is different"


@pytest.mark.parametrize("number", [None, 1003], ids=["by names", "by an LMS"])
def test_what_a_member_handed_in_before_is_not_replaced(
    taken: Made, folder: Callable[..., Path], number: int | None
) -> None:
    """It was graded from another download; of a third one nobody knows whose counts, until it is said."""
    named = code(SECOND) if number is None else f"Two_{number}_assignsubmission_file_/{code(SECOND)}"
    before = recorded(taken({named: "a = 2"}, {}))
    shutil.rmtree(folder({}))
    three = groups((FIRST, "G1", False), (SECOND, "G1", False), (THIRD, "G1", False))
    uploads = taken({code(FIRST): "a = 1"}, three, uploads=before)
    assert set(by_student(uploads)) == {FIRST} and uploads.moved == ()
    assert uploads.notes == (
        f"G1: what {SECOND} handed in by themselves stays theirs. For {THIRD}, say whose counts by "
        "'hands_in' in the file of groups.",
    )
    for whose, handed_on in ((FIRST, {FIRST, THIRD}), (SECOND, {FIRST})):
        said = groups(*((one, "G1", one == whose) for one in (FIRST, SECOND, THIRD)))
        uploads = taken({code(FIRST): "a = 1"}, said, uploads=before)
        assert set(by_student(uploads)) == handed_on
        assert any(f"{THIRD}: {whose}'s counts" in note for note in uploads.notes)


def test_a_later_attempt_of_the_sender_is_handed_on_again(taken: Made) -> None:
    """What the others have is the sender's, and nothing of their own."""
    before = recorded(taken({code(FIRST): "a = 1"}, PAIR))
    found = by_student(taken({code(FIRST): "a = 2"}, PAIR, uploads=before))
    assert set(found) == {FIRST, SECOND} and found[FIRST] == found[SECOND]


def test_whose_own_work_may_wait_gets_nothing_else(taken: Made) -> None:
    three = groups((FIRST, "G1", False), (SECOND, "G1", False), (THIRD, "G1", False))
    files = {code(FIRST): "a = 1", f"one/{code(SECOND)}": "a = 2", f"two/{code(SECOND)}": "a = 3"}
    uploads = taken(files, three)
    assert {one.student_id for one in uploads.submissions if not one.held} == {FIRST, THIRD}
    assert any(f"G1: nothing is handed on to {SECOND}" in note for note in uploads.notes)


def test_the_file_may_say_whose_counts(taken: Made) -> None:
    three = groups((FIRST, "G1", False), (SECOND, "G1", True), (THIRD, "G1", False))
    uploads = taken({code(FIRST): "a = 1", code(SECOND): "a = 2"}, three)
    found = by_student(uploads)
    assert found[THIRD] == found[SECOND] != found[FIRST]
    assert any(f"{SECOND}'s counts" in note for note in uploads.notes)


def test_whoever_hands_in_nothing_as_a_group_has_nothing(taken: Made) -> None:
    assert set(by_student(taken({code(ALONE): "b = 2"}, PAIR))) == {ALONE}


def test_what_is_nobodys_is_handed_on_to_nobody(taken: Made) -> None:
    uploads = taken({f"one/{code(FIRST)}": "a = 1", f"two/{code(FIRST)}": "a = 2"}, PAIR)
    assert all(one.held for one in uploads.submissions) and SECOND not in by_student(uploads)


def test_a_file_by_itself_is_one_students(
    taken: Made, folder: Callable[..., Path], assignment: Assignment, tmp_path: Path
) -> None:
    path = folder({code(FIRST): "a = 1"}) / code(FIRST)
    uploads = submissions(path, assignment, tmp_path, known=KnownOwners(groups=PAIR))
    assert set(by_student(uploads)) == {FIRST}


@pytest.mark.parametrize("list_known", [False, True], ids=["by names", "by the class list"])
def test_an_lms_sends_it_too(taken: Made, list_known: bool) -> None:
    """Moodle's number is the sender's alone: by it, the class list would give both submissions to one."""
    listed = {"1002": ListedStudent(FIRST, sure=True), "1003": ListedStudent(SECOND, sure=True)}
    directory = Directory("Moodle", listed) if list_known else Directory()
    named = f"Person One_1002_assignsubmission_file_/{code(FIRST)}"
    uploads = taken({named: "a = 1"}, PAIR, directory=directory)
    found = by_student(uploads)
    assert set(found) == {FIRST, SECOND} and found[FIRST] == found[SECOND]
    assert [one.origin.number for one in uploads.submissions] == ["1002", ""]
    assert not [one.held for one in uploads.submissions if one.held]
