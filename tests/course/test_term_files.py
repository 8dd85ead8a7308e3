"""The files of a term: what is wrong in them is told with the row and the column."""

from collections.abc import Collection
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from grader.course.locate import located_course
from grader.course.term_files import section_students, term_people
from grader.domain.errors import CourseError, UsageError
from grader.domain.term_total import (
    CourseSection,
    GroupMember,
    PartState,
    TermPart,
    TermPeople,
    TermTotal,
)

HER, HIM = "400101204", "400101205"
HEAD = 'title = "A course"\nsecret = "a secret of its own"\n'
TOTAL = "[total]\npassing = 50\nweights = { lab1 = 40, lab2 = 60.5 }\n"
PEOPLE = (
    '[people]\nstudents = "students.csv"\ngroups = "groups.csv"\n[people.sections]\nA = ["ta1"]\nB = []\n'
)


def people(
    folder: Path,
    *,
    students: str = "",
    groups: str = "group,student_id\n",
    table: str = PEOPLE,
    known: Collection[str] = (),
) -> TermPeople:
    (folder / "course.toml").write_text(HEAD + TOTAL + table)
    (folder / "students.csv").write_text(students or f"student_id,section\n{HER},A\n{HIM},B\n")
    (folder / "groups.csv").write_text(groups)
    return term_people(located_course(folder, environment={}).plan, known)


def test_a_course_says_what_its_term_is(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(HEAD + TOTAL + PEOPLE)
    plan = located_course(tmp_path, environment={}).plan
    assert (dict(plan.weights), plan.passing, plan.maximum) == ({"lab1": 40, "lab2": 60.5}, 50, 100.5)
    assert plan.sections == (CourseSection("A", ("ta1",)), CourseSection("B"))
    (tmp_path / "course.toml").write_text(HEAD)
    assert not located_course(tmp_path, environment={}).plan.weights, "a course need not have a term"


def test_weights_sum_to_what_they_do_on_paper(tmp_path: Path) -> None:
    """In binary fractions, these are a little less than 100: all could not pass, nor fit an LMS's column."""
    weights = {f"lab{number}": 11.1 for number in range(8)} | {"exam": 11.2}
    assert reduce(add, weights.values()) != 100  # newer versions of Python's own `sum` compensate
    listed = ", ".join(f"{name} = {weight}" for name, weight in weights.items())
    (tmp_path / "course.toml").write_text(f"{HEAD}[total]\npassing = 100\nweights = {{ {listed} }}\n")
    plan = located_course(tmp_path, environment={}).plan
    parts = tuple(TermPart(name, one, PartState.DECIDED, one, one, one) for name, one in weights.items())
    total = TermTotal(HER, "", parts, plan.passing)
    assert (plan.maximum, total.maximum, total.points) == (100, 100, 100) and not total.risks


def test_ids_are_those_under_which_results_are_listed(tmp_path: Path) -> None:
    """A spreadsheet dropped leading zeros, and an LMS wrote large letters; the rest stays as it is."""
    students = "student_id,section\n12345,A\ns77,B\n0099,A\n55,A\n055,B\n"
    known = ("0012345", "S77", "99", "0055")
    people(tmp_path, students=students, groups="group,student_id\nG1,12345\nG1,s77\n")
    plan = located_course(tmp_path, environment={}).plan
    found = term_people(plan, known)
    assert found.sections == {"0012345": "A", "S77": "B", "99": "A", "55": "A", "055": "B"}
    assert [member.student_id for member in found.groups["lab1"]["S77"]] == ["0012345", "S77"]
    assert section_students(plan, "B", known) == {"S77", "055"}
    alike = ("0012345", "12345", "s77")
    assert term_people(plan, alike).sections == term_people(plan).sections


def test_ids_of_groups_are_those_of_students_before_anything_is_graded(tmp_path: Path) -> None:
    """Either file may lack what the other has: who handed in nothing is in no list of results."""
    students = "student_id\n0012345\ns77\n99\n55\n055\n"
    groups = "group,student_id\nG1,12345\nG1,S77\nG1,0099\nG1,055\n"
    members = people(tmp_path, students=students, groups=groups, table=PEOPLE).groups["lab1"]["s77"]
    assert [member.student_id for member in members] == ["0012345", "s77", "0099", "055"]
    mixed = people(
        tmp_path,
        students="student_id,section\n123,A\n456,B\n",
        groups="group,student_id\nG1,00123\nG1,00456\n",
        table=PEOPLE,
        known=["00123"],
    )
    assert mixed.sections == {"00123": "A", "00456": "B"} and set(mixed.groups["lab1"]) == {*mixed.sections}
    with pytest.raises(UsageError, match="'0055' is not in the CSV of students"):
        people(tmp_path, students=students, groups="group,student_id\nG1,0055\n")


def test_sections_and_groups_are_read(tmp_path: Path) -> None:
    found = people(tmp_path, groups=f"group;student_id;weight;hands_in\nG1;{HER};;yes\nG1;{HIM};0,8;\n")
    assert found.sections == {HER: "A", HIM: "B"}
    members = (GroupMember(HER, "G1", 1, hands_in=True), GroupMember(HIM, "G1", 0.8))
    assert found.groups == {name: {HER: members, HIM: members} for name in ("lab1", "lab2")}


def test_rows_without_an_assignment_hold_where_no_row_names_it(tmp_path: Path) -> None:
    groups = f"assignment,group,student_id\n,G1,{HER}\n,G1,{HIM}\nlab2,alone,{HIM}\n"
    found = people(tmp_path, groups=groups).groups
    assert set(found["lab1"]) == {HER, HIM} and set(found["lab2"]) == {HIM}


def test_without_files_nothing_is_known_of_people(tmp_path: Path) -> None:
    assert people(tmp_path, table="") == TermPeople(None, {})


@pytest.mark.parametrize(
    ("students", "groups", "sentence"),
    [
        ("name,section\n", "", "students.csv: row 1 must have the column 'student_id' once."),
        (f"student_id\n{HER}\n{HER}\n", "", "students.csv: row 3, column 'student_id': '400101204' is there"),
        (f"student_id,section\n{HER},a\n", "", "column 'section': 'a' is not in [people.sections]"),
        ("", "group,student_id\nG1,\n", "groups.csv: row 2, column 'student_id': is empty."),
        ("", f"group,student_id\n,{HER}\n", "groups.csv: row 2, column 'group': is empty."),
        ("", "group,student_id\nG1,400101999\n", "'400101999' is not in the CSV of students."),
        ("", f"group,student_id\nG1,{HER}\nG2,{HER}\n", "row 3, column 'student_id': '400101204' is already"),
        ("", f"group,student_id,weight\nG1,{HER},much\n", "'weight': 'much' is not a number from 0 on."),
        ("", f"group,student_id,weight\nG1,{HER},-1\n", "column 'weight': '-1' is not a number from 0 on."),
        ("", f"group,student_id,weight\nG1,{HER},nan\n", "column 'weight': 'nan' is not a number from 0 on."),
        ("", f"group,student_id,hands_in\nG1,{HER},x\n", "column 'hands_in': is 'x'. Write 'yes'"),
        (
            "",
            f"group,student_id,hands_in\nG1,{HER},yes\nG1,{HIM},yes\n",
            "row 3, column 'hands_in': two members of 'G1' have 'yes'.",
        ),
        (
            "",
            f"assignment,group,student_id\nlab_1,G1,{HER}\n",
            "'lab_1' has no weight in [total] of course.toml. Did you mean 'lab1'?",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, students: str, groups: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as told:
        people(tmp_path, students=students, groups=groups or "group,student_id\n")
    assert sentence in str(told.value)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("[total]\nweights = {}\n", "'weights' is a table but must be"),
        ("[total]\nweights = { lab1 = 0 }\n", "must be more than 0"),
        ("[total]\nweights = { lab1 = 10 }\npassing = 20\n", "'passing' is 20, and the weights sum to 10."),
        (
            "[people]\nsection = 1\n",
            "[people] has 'section', which means nothing here. Did you mean 'sections'?",
        ),
        ('[people.sections]\nA = "ta1"\n', "must be a list in square brackets"),
    ],
)
def test_a_course_file_that_cannot_be_meant_is_refused(tmp_path: Path, table: str, sentence: str) -> None:
    (tmp_path / "course.toml").write_text(HEAD + table)
    with pytest.raises(CourseError) as told:
        located_course(tmp_path, environment={})
    assert sentence in str(told.value)
