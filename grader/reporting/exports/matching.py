"""Which row of an LMS's table is which student's."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.intake.naming import plain, sanitized
from grader.reporting.exports.csv_text import CsvText

_LAST_NUMBER = re.compile(r"(\d+)$")
# What intake calls a student of whom it knows no more than the LMS's label: `Student_17_12345`.
_LABEL = re.compile(r".*[A-Za-z].*_(?P<number>\d+)$")


@dataclass(frozen=True)
class Matching:
    """Rows and students, as far as they are one another's.

    Attributes:
        students: Row -> student id.
        unknown: Rows without a result.
        absent: Students without a row, sorted.
        doubts: Row -> a sentence: it fits several students, or its student fits several rows.
    """

    students: Mapping[int, str]
    unknown: tuple[int, ...]
    absent: tuple[str, ...]
    doubts: Mapping[int, str]


def matching(
    table: CsvText,
    rows: Sequence[int],
    columns: Sequence[int],
    number: int | None,
    student_ids: Iterable[str],
) -> Matching:
    """Match rows with students.

    A row is a student's if one of its cells is the student's id (an ID number, a SIS user id, a login), or
    the part of an e-mail address before the @, written as ids are; or if its number in the LMS ends the
    label that stands for an id where files carry none (`Participant_12345`). Of a name without Latin letters
    the number is all that is left of the label: it counts where nothing else tells whose row or result it is.

    Args:
        rows: The rows of students, counted from 0.
        columns: Those that tell who it is.
        number: The column of the LMS's own number: `Participant 12345`, or `12345`; None where
            there is none.
        student_ids: Those with a result.
    """
    ids = sorted(student_ids)
    exact = {student_id.casefold(): student_id for student_id in ids}
    labels: dict[str, list[str]] = defaultdict(list)
    for student_id in ids:
        if label := _LABEL.match(student_id):
            labels[label["number"]].append(student_id)
    fits: dict[int, list[str]] = {}
    claims: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found = {exact[key] for column in columns for key in _keys(table.cell(row, column)) if key in exact}
        if number is not None and (last := _LAST_NUMBER.search(table.cell(row, number))):
            found.update(labels.get(last[1], ()))
        fits[row] = sorted(found)
    for row, alone in _by_number_alone(table, fits, number, exact).items():
        fits[row] = [alone]
    for row, students in fits.items():
        for student_id in students:
            claims[student_id].append(row)
    doubts = {row: _doubt(table, row, fits[row], claims) for row in rows}
    return Matching(
        students={row: found[0] for row, found in fits.items() if len(found) == 1 and not doubts[row]},
        unknown=tuple(row for row, found in fits.items() if not found),
        absent=tuple(student_id for student_id in ids if student_id not in claims),
        doubts={row: doubt for row, doubt in doubts.items() if doubt},
    )


def _by_number_alone(
    table: CsvText, fits: Mapping[int, Sequence[str]], number: int | None, exact: Mapping[str, str]
) -> dict[int, str]:
    """Row -> the student whose id is the row's number, among rows and students that nothing else matches."""
    if number is None:
        return {}
    taken = {student_id for found in fits.values() for student_id in found}
    found = {}
    for row in (row for row, students in fits.items() if not students):
        last = _LAST_NUMBER.search(table.cell(row, number))
        student_id = exact.get(last[1]) if last else None
        if student_id is not None and student_id not in taken:
            found[row] = student_id
    return found


def _keys(text: str) -> set[str]:
    """How the id of whoever this cell is about may be written."""
    if not text:
        return set()
    texts = [text, text.partition("@")[0]] if "@" in text else [text]
    return {sanitized(plain(one)).casefold() for one in texts if one}


def _doubt(table: CsvText, row: int, found: Sequence[str], claims: Mapping[str, Sequence[int]]) -> str:
    where = f"{table.name}, row {row + 1}"
    if len(found) > 1:
        return f"{where}: fits {' and '.join(found)}"
    others = [other + 1 for student_id in found for other in claims[student_id] if other != row]
    if others:
        return f"{where}: fits {found[0]}, and so does row {others[0]}"
    return ""
