"""What a course says about its term: the tables of `course.toml`, and the CSVs of students and groups.

It refuses what contradicts itself, each with one sentence. It never looks at results.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from grader.course.csv_table import CsvRow, csv_rows_of
from grader.course.known_ids import KnownIds
from grader.course.toml_file import Table, listing, remedy
from grader.domain.errors import CourseError, UsageError
from grader.domain.formatting import points
from grader.domain.term_total import CourseSection, GroupMember, TermPeople, TermPlan
from grader.files.file_names import plain, sanitized

FILE = "course.toml"
STUDENTS, GROUPS = "the CSV of students", "the CSV of groups"
YES, NO = "yes", ("", "no")


class PeopleTable(Table):
    """`[people]`: who is in which section, and who works together."""

    students: str = ""
    groups: str = ""
    sections: dict[str, list[str]] = Field(default_factory=dict)


class TotalTable(Table):
    """`[total]`: what each assignment is worth in the term."""

    weights: Annotated[dict[str, Annotated[float, Field(gt=0)]], Field(min_length=1)]
    passing: Annotated[float | None, Field(gt=0)] = None


def term_plan(root: Path, total: TotalTable | None, people: PeopleTable) -> TermPlan:
    """What the tables say.

    Args:
        root: The course's folder, which paths begin at.

    Raises:
        CourseError: More points pass than there are.
    """
    plan = TermPlan(
        dict(total.weights) if total is not None else {},
        total.passing if total is not None else None,
        root / people.students if people.students else None,
        root / people.groups if people.groups else None,
        tuple(CourseSection(name, tuple(markers)) for name, markers in people.sections.items()),
    )
    if plan.passing is not None and plan.passing > plan.maximum:
        raise CourseError(
            f"{FILE}: [total] 'passing' is {points(plan.passing)}, and the weights sum to "
            f"{points(plan.maximum)}. Change one of them."
        )
    return plan


def term_people(plan: TermPlan, known: Collection[str] = ()) -> TermPeople:
    """Who is in the course, as its files say.

    Args:
        known: The ids under which results are listed: see `KnownIds`.

    Raises:
        UsageError: A file cannot be read, or contradicts itself or `course.toml`.
    """
    ids = KnownIds(known)
    sections = None if plan.students is None else _sections(plan.students, plan, ids)
    groups = {} if plan.groups is None else _groups(plan.groups, plan.weights, sections, ids)
    if sections is not None:  # a person has one id, also where one of the files has lost its leading zeros
        meant = KnownIds(one for each in groups.values() for one in each).of_table(sections)
        sections = {meant[one]: section for one, section in sections.items()}
    return TermPeople(sections, groups)


def assignment_groups(
    plan: TermPlan,
    assignment_id: str,
    assignments: Collection[str],
    file: Path | None = None,
    known: Collection[str] = (),
) -> Mapping[str, tuple[GroupMember, ...]]:
    """Student -> the members of the student's group for an assignment; empty without a file of groups.

    Args:
        assignments: All of the course.
        file: The CSV of groups, in place of the course's.
        known: As for `term_people`.

    Raises:
        UsageError: A file cannot be read, or contradicts itself.
    """
    path = file or plan.groups
    if path is None:
        return {}
    ids = KnownIds(known)
    sections = None if plan.students is None else _sections(plan.students, plan, ids)
    everything = sorted({*assignments, *plan.weights, assignment_id})
    return _groups(path, everything, sections, ids, lacks="is no assignment of the course")[assignment_id]


def section_students(plan: TermPlan, section: str, known: Collection[str] = ()) -> frozenset[str]:
    """The students of a section.

    Args:
        known: As for `term_people`.

    Raises:
        UsageError: The course names no students, or none in this section; or its file cannot be read.
    """
    if plan.students is None:
        raise UsageError(f"{FILE} has no list of students. Name one by 'students' in its table [people].")
    sections = _sections(plan.students, plan, KnownIds(known))
    found = frozenset(student_id for student_id, name in sections.items() if name == section)
    if not found:
        there = sorted({*sections.values(), *(one.name for one in plan.sections)} - {""})
        advice = remedy(section, there, f"There are {listing(there)}.")
        raise UsageError(f"{plan.students.name}: nobody is in the section '{section}'. {advice}")
    return found


def _sections(path: Path, plan: TermPlan, known: KnownIds) -> dict[str, str]:
    """Student -> section."""
    named = [section.name for section in plan.sections]
    sections: dict[str, str] = {}
    rows = csv_rows_of(path, ("student_id",), STUDENTS, optional=("section",))
    ids = known.of_table({_student_id(row) for row in rows})
    for row in rows:
        student_id, section = ids[_student_id(row)], row["section"]
        if student_id in sections:
            raise row.fault("student_id", f"'{student_id}' is there twice. Remove one row.")
        if section and named and section not in named:
            advice = remedy(section, named, f"There are {listing(named)}.")
            raise row.fault("section", f"'{section}' is not in [people.sections] of {FILE}. {advice}")
        sections[student_id] = section
    return sections


# --- groups ----------------------------------------------------------------------------------------------


def _groups(
    path: Path,
    assignments: Collection[str],
    students: Mapping[str, str] | None,
    known: KnownIds,
    *,
    lacks: str = f"has no weight in [total] of {FILE}",
) -> dict[str, dict[str, tuple[GroupMember, ...]]]:
    """Assignment -> student -> the members of the student's group.

    Rows without an assignment hold for every assignment that no row names.

    Args:
        lacks: What is wrong with another assignment, as a clause.
    """
    members: dict[str, dict[str, GroupMember]] = {}
    handing_in: set[tuple[str, str]] = set()
    optional = ("assignment", "weight", "hands_in")
    rows = csv_rows_of(path, ("group", "student_id"), GROUPS, optional=optional)
    ids = known.of_table({_student_id(row) for row in rows})
    in_students = KnownIds(students or ()).of_table(set(ids.values()))
    for row in rows:
        assignment_id, member = row["assignment"], _member(row)
        student_id = in_students[ids[member.student_id]]
        if assignment_id and assignment_id not in assignments:
            advice = remedy(assignment_id, list(assignments), f"There are {listing(list(assignments))}.")
            raise row.fault("assignment", f"'{assignment_id}' {lacks}. {advice}")
        if students is not None and student_id not in students:
            raise row.fault("student_id", f"'{student_id}' is not in {STUDENTS}. Correct one of them.")
        # spreadsheets drop leading zeros, and add none
        member = replace(member, student_id=max(student_id, ids[member.student_id], key=len))
        in_assignment = members.setdefault(assignment_id, {})
        if member.student_id in in_assignment:
            other = in_assignment[member.student_id].group
            raise row.fault("student_id", f"'{member.student_id}' is already in '{other}'. Remove one row.")
        place = (assignment_id, member.group)
        if member.hands_in and place in handing_in:
            raise row.fault("hands_in", f"two members of '{member.group}' have 'yes'. Leave one.")
        if member.hands_in:
            handing_in.add(place)
        in_assignment[member.student_id] = member
    everywhere = members.get("", {})
    return {one: _by_student(members.get(one, everywhere)) for one in assignments}


def _by_student(members: Mapping[str, GroupMember]) -> dict[str, tuple[GroupMember, ...]]:
    by_group: dict[str, list[GroupMember]] = {}
    for member in members.values():
        by_group.setdefault(member.group, []).append(member)
    return {student_id: tuple(by_group[member.group]) for student_id, member in members.items()}


def _member(row: CsvRow) -> GroupMember:
    if not row["group"]:
        raise row.fault("group", "is empty. Name the group, or remove the row.")
    hands_in = row["hands_in"].casefold()
    if hands_in not in (YES, *NO):
        raise row.fault("hands_in", f"is '{hands_in[:40]}'. Write 'yes', or leave it empty.")
    return GroupMember(_student_id(row), row["group"], _weight(row), hands_in == YES)


def _weight(row: CsvRow) -> float:
    text = row["weight"].replace(",", ".")
    try:
        weight = float(text or 1)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise row.fault("weight", f"'{text[:40]}' is not a number from 0 on. Write it as in 0.9.")
    return weight


def _student_id(row: CsvRow) -> str:
    student_id = sanitized(plain(row["student_id"])) if row["student_id"] else ""
    if not student_id:
        raise row.fault("student_id", "is empty. Write the student's id, or remove the row.")
    return student_id
