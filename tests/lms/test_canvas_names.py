"""Names in a Canvas download: what people call themselves does not make them somebody else."""

import time

import pytest

from grader.lms.canvas.canvas_files import contested
from grader.lms.downloads import read_name, without_person_names

CLASS = [
    f"doe{n}_{1000000 + 37 * n}_{123456000 + 10 * n}_{400101000 + n}_Lab8_Homework.py" for n in range(1, 40)
]
VICTIM = "fivedelta_1000002_123456011_400101040_Lab8_Homework.py"


@pytest.mark.parametrize(
    "name",
    [
        "sixepsilon_1000002_123456_1000998_123456999_hw.py",
        "sixepsilon_1000002_1000998_123456999_hw.py",
        "fivedelta_1000002_1000998_123456999_hw.py",
        "fivedelta_1000002_123456012_1000998_123456999_hw.py",
        "sixepsilon_42_1000998_text.html",
    ],
)
def test_a_name_with_another_users_number_tells_no_user(name: str) -> None:
    found = contested([*CLASS, VICTIM, name])
    assert list(found) == [name]
    assert (found[name].number, found[name].order) == ("", 0)
    assert found[name].sender_key not in {read_name(one).sender_key for one in [*CLASS, VICTIM]}


@pytest.mark.parametrize(
    "own",
    [
        "2026_10_31_hw.py",
        "12_05_hw.py",
        "400101041_20260131_hw.py",
        "vit_10_20_30.py",
        "400101041_8_4_hw.py",
        "hw_1.py",
    ],
)
def test_numbers_in_files_own_names_are_no_doubt(own: str) -> None:
    assert contested([*CLASS, VICTIM, f"roe_1000556_123456777_{own}"]) == {}


def test_the_mark_of_a_late_upload_stands_before_canvass_own_numbers() -> None:
    name = "sixepsilon_1000002_LATE_1000998_123456999_hw.py"
    assert contested([*CLASS, VICTIM, name]) == {} and read_name(name).number == "1000998"


def test_a_rule_that_would_doubt_the_class_is_not_applied() -> None:
    """Numbers of users, uploads and students with as many digits."""
    names = [f"doe{n}_{20000000 + n}_{98765000 + n}_{40010120 + n}_hw.py" for n in range(1, 9)]
    assert contested(names) == {}


def test_one_number_with_two_names_is_nobodys() -> None:
    assert contested(["one_42_100001_a.py", "two_42_100002_b.py", "three_43_100003_c.py"]).keys() == {
        "one_42_100001_a.py",
        "two_42_100002_b.py",
    }


def test_two_files_have_two_numbers() -> None:
    names = [
        "one_42_7001_100001_a.py",
        "one_42_7001_100002_b.py",
        "two_43_100003_c.py",
        "three_44_100004_c.py",
    ]
    assert contested(names).keys() == set(names[:2])


def test_it_does_not_take_long() -> None:
    names = [f"x{n}" + "_12" * 70 + ".py" for n in range(500)]
    begun = time.process_time()
    contested(names)
    assert time.process_time() - begun < 5  # seconds; usually 0.5


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("Alpha One_5017_assignsubmission_file_/a/b.py", "5017_assignsubmission_file_/a/b.py"),
        ("zip/Alpha One_5017_assignsubmission_file_x.py", "zip/5017_assignsubmission_file_x.py"),
        ("onealpha_LATE_42_100001_x.py", "LATE_42_100001_x.py"),
        ("anon_A1b_100001_x.py", "anon_A1b_100001_x.py"),
        ("Default group_assignsubmission_file_x.py", "Default group_assignsubmission_file_x.py"),
        ("submission_12/x.py", "submission_12/x.py"),
        ("400101204_Lab8_Homework.py", "400101204_Lab8_Homework.py"),
        ("", ""),
    ],
)
def test_paths_without_names_of_people(path: str, told: str) -> None:
    assert without_person_names(path) == told
