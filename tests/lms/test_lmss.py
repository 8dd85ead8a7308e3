"""Every LMS of the list is known everywhere: downloads, ids of uploads without an owner, lists, exports."""

import pytest

from grader.intake.ownership import is_provisional, provisional_id
from grader.lms import FORMATS, LMSS
from grader.lms.downloads import is_metadata, read_name
from grader.lms.roster import ID_COLUMNS
from grader.lms.system import DownloadName, Lms

NAMES = {
    "Moodle": "Student One_11_assignsubmission_file_hw.py",
    "Canvas": "onestudent_LATE_1000001_123456_hw.py",
    "Gradescope": "submission_12345",
    "Blackboard": "Lab 8_sone_attempt_2026-01-31-23-40-05_hw.py",
}


@pytest.mark.parametrize("lms", LMSS, ids=lambda one: one.name)
def test_a_name_of_each_is_read_as_its_own(lms: Lms) -> None:
    told = read_name(NAMES[lms.name])
    assert told.lms == lms.name and told.sender_label and told.sender_key
    assert [one.name for one in LMSS if one.read_name(NAMES[lms.name])] == [lms.name]


@pytest.mark.parametrize("lms", LMSS, ids=lambda one: one.name)
def test_an_id_that_stands_for_nobody_is_no_students(lms: Lms) -> None:
    told = read_name(NAMES[lms.name])
    made = provisional_id(f"{lms.name}:{told.sender_key}", lms.name, told.number, told.sender_label or "")
    assert is_provisional(made) and is_provisional(f"{lms.name.lower()}-1")
    assert not is_provisional("400101204")


@pytest.mark.parametrize("lms", LMSS, ids=lambda one: one.name)
def test_what_it_says_of_its_lists_and_files_is_used(lms: Lms) -> None:
    form = lms.class_list
    assert set(ID_COLUMNS) >= {*form.numbers, *form.logins}
    assert lms.metadata is None or is_metadata(lms.metadata.file.upper())
    assert lms.formats and set(lms.formats) <= set(FORMATS)


def test_names_are_in_one_list_once() -> None:
    assert len({one.name for one in FORMATS}) == len(FORMATS)
    assert len({one.name for one in LMSS}) == len(LMSS)
    assert read_name("400101204_Lab8_Homework.py") == DownloadName("400101204_Lab8_Homework.py")
