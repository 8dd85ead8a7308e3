"""Matches the rows of an LMS's table with students."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.submission import Origin
from grader.files.csv_text import CsvText
from grader.files.file_names import plain, sanitized

_LAST_NUMBER = re.compile(r"(\d+)$")
# the id that earlier versions gave a student known only by the LMS's label: `Student_17_12345`
_LABEL = re.compile(r".*[A-Za-z].*_(?P<number>\d+)$")
# columns of names, which people choose: they hold no ids
_NAMES = ("full name", "first name", "last name", "surname", "student", "name", "lastname", "firstname")


def last_number(text: str) -> str:
    """The number at the end of a text; empty if it does not end with one."""
    match = _LAST_NUMBER.search(text)
    return match[1] if match else ""


@dataclass(frozen=True)
class NumberColumn:
    """The column of an LMS's own number, or login, of a student.

    Attributes:
        at: The column, counted from 0.
        lms: Whose number it is: `Moodle`, `Canvas`, ...
        read: Text of a cell (`Participant 12345`, `12345`) -> the number; empty if there is none.
        is_id: Whether students may also be listed by it. (If not, a student's id may happen to equal
            somebody else's number in the LMS.)
    """

    at: int
    lms: str
    read: Callable[[str], str] = last_number
    is_id: bool = False


@dataclass(frozen=True)
class Candidate:
    """A result to match with a row.

    Attributes:
        origin: The upload that it comes from; unknown for an earlier version's result.
        held: Nobody knows whose it is, so no row belongs to it.
        decided: A person decided whose it is, which outranks the number that the LMS gave the upload.
    """

    student_id: str
    origin: Origin = field(default_factory=Origin)
    held: bool = False
    decided: bool = False

    @property
    def is_noted(self) -> bool:
        """Whether it is known which upload it comes from."""
        return bool(self.origin.key)

    def number_in(self, lms: str) -> str:
        """The LMS's own number of whoever handed it in; empty if that is not known."""
        return self.origin.number if self.origin.lms == lms else ""


@dataclass(frozen=True)
class Matching:
    """The rows and students that belong together, and those that do not.

    Attributes:
        students: Row -> student id.
        unknown: Rows without a result.
        absent: Students without a row, sorted.
        doubts: Row -> a sentence: it fits several students, or its student fits several rows.
        held: Row without a result of its own -> the held results that may be its own, sorted.
    """

    students: Mapping[int, str]
    unknown: tuple[int, ...]
    absent: tuple[str, ...]
    doubts: Mapping[int, str]
    held: Mapping[int, tuple[str, ...]]


def candidates(results: Iterable[tuple[Evidence, Score]]) -> tuple[Candidate, ...]:
    """The results to match with rows, sorted by student."""
    unsorted = (
        Candidate(
            score.student_id,
            evidence.origin,
            score.held,
            score.ownership is not None and score.ownership.decided,
        )
        for evidence, score in results
    )
    return tuple(sorted(unsorted, key=lambda candidate: candidate.student_id))


def matching(
    table: CsvText,
    rows: Sequence[int],
    columns: Sequence[int],
    number: NumberColumn | None,
    results: Iterable[Candidate],
) -> Matching:
    """Match rows with students.

    A row belongs to the student whose upload has the row's number in the LMS, whatever id the upload
    carries. For other students, one of its cells must be the student's id (an ID number, a SIS user id, a
    login) or the part of an e-mail address before the @, written like an id. If a person decided whose a
    submission is, the id comes first.

    Args:
        rows: The rows of students, counted from 0.
        columns: The columns that identify the student.
        number: The column of the LMS's own number; None if there is none.
        results: Of the class.
    """
    all_candidates = sorted(results, key=lambda candidate: candidate.student_id)
    owned = [candidate for candidate in all_candidates if not candidate.held]
    lms = number.lms if number else ""
    numbers = {row: number.read(table.cell(row, number.at)) if number else "" for row in rows}
    texts = [column for column in columns if number is None or number.is_id or column != number.at]
    keys = {row: _keys(table, row, texts) for row in rows}
    fits = _by_number(owned, numbers, lms)
    placed = {student_id for students in fits.values() for student_id in students}
    _by_text([candidate for candidate in owned if candidate.student_id not in placed], keys, fits)
    _by_label([candidate for candidate in owned if not candidate.is_noted], numbers, fits)
    _by_number_alone(owned, numbers, lms, fits)
    claims: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        for student_id in fits[row]:
            claims[student_id].append(row)
    doubts = {row: _doubt(table, row, sorted(fits[row]), claims) for row in rows}
    held = _held([candidate for candidate in all_candidates if candidate.held], numbers, keys, lms)
    return Matching(
        students={row: next(iter(fits[row])) for row in rows if len(fits[row]) == 1 and not doubts[row]},
        unknown=tuple(row for row in rows if not fits[row] and row not in held),
        absent=tuple(candidate.student_id for candidate in owned if candidate.student_id not in claims),
        doubts={row: doubt for row, doubt in doubts.items() if doubt},
        held={row: students for row, students in held.items() if not fits[row]},
    )


Fits = dict[int, set[str]]
"""Row -> the students that it fits."""


def _by_number(owned: Sequence[Candidate], numbers: Mapping[int, str], lms: str) -> Fits:
    """Match by the number that the LMS gave both the row and the upload."""
    students: dict[str, set[str]] = defaultdict(set)
    for candidate in owned:
        if (number := candidate.number_in(lms)) and not candidate.decided:
            students[number].add(candidate.student_id)
    return {row: set(students.get(number, ())) for row, number in numbers.items()}


def _by_text(owned: Iterable[Candidate], keys: Mapping[int, set[str]], fits: Fits) -> None:
    """Match by the student's id in the row."""
    exact = {candidate.student_id.casefold(): candidate.student_id for candidate in owned}
    for row, texts in keys.items():
        fits[row] |= {exact[text] for text in texts if text in exact}


def _by_label(not_recorded: Iterable[Candidate], numbers: Mapping[int, str], fits: Fits) -> None:
    """Match by the LMS's number at the end of the label that earlier versions used as an id."""
    labels: dict[str, set[str]] = defaultdict(set)
    for candidate in not_recorded:
        if label := _LABEL.match(candidate.student_id):
            labels[label["number"]].add(candidate.student_id)
    for row, number in numbers.items():
        fits[row] |= labels.get(number, set()) if number else set()


def _by_number_alone(owned: Sequence[Candidate], numbers: Mapping[int, str], lms: str, fits: Fits) -> None:
    """Match by the upload's number, or by an id that equals the row's number, if nothing else matches."""
    placed = {student_id for students in fits.values() for student_id in students}
    by_number = {candidate.student_id: candidate.student_id for candidate in owned if not candidate.is_noted}
    by_number |= {
        candidate.number_in(lms): candidate.student_id
        for candidate in owned
        if candidate.decided and candidate.number_in(lms)
    }
    for row, number in numbers.items():
        student_id = by_number.get(number)
        if student_id is not None and not fits[row] and student_id not in placed:
            fits[row].add(student_id)


def _held(
    held_candidates: Iterable[Candidate], numbers: Mapping[int, str], keys: Mapping[int, set[str]], lms: str
) -> dict[int, tuple[str, ...]]:
    """The rows that may belong to results with an unknown owner."""
    students_by_row: dict[int, list[str]] = defaultdict(list)
    for candidate in held_candidates:
        number, carried = candidate.number_in(lms), candidate.origin.carries.casefold()
        for row, row_number in numbers.items():
            if (number and number == row_number) or (carried and carried in keys[row]):
                students_by_row[row].append(candidate.student_id)
    return {row: tuple(sorted(students)) for row, students in students_by_row.items()}


def _keys(table: CsvText, row: int, columns: Iterable[int]) -> set[str]:
    """The possible ids of the student of a row, normalized."""
    texts = [table.cell(row, column) for column in columns if table.header[column].casefold() not in _NAMES]
    texts += [text.partition("@")[0] for text in texts if "@" in text]
    return {sanitized(plain(text)).casefold() for text in texts if text}


def _doubt(table: CsvText, row: int, students: Sequence[str], claims: Mapping[str, Sequence[int]]) -> str:
    where = f"{table.name}, row {row + 1}"
    if len(students) > 1:
        return f"{where}: fits {' and '.join(students)}"
    other_rows = [
        other_row + 1 for student_id in students for other_row in claims[student_id] if other_row != row
    ]
    if other_rows:
        return f"{where}: fits {students[0]}, and so does row {other_rows[0]}"
    return ""
