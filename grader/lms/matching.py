"""Which row of an LMS's table is which student's."""

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
# What earlier versions called a student of whom they knew no more than the LMS's label: `Student_17_12345`.
_LABEL = re.compile(r".*[A-Za-z].*_(?P<number>\d+)$")
# Columns of what people are called, which they choose: nobody's id stands there.
_NAMES = ("full name", "first name", "last name", "surname", "student", "name", "lastname", "firstname")


def last_number(text: str) -> str:
    """The number at the end of a text; empty where it ends otherwise."""
    found = _LAST_NUMBER.search(text)
    return found[1] if found else ""


@dataclass(frozen=True)
class NumberColumn:
    """The column of an LMS's own number, or login, of a student.

    Attributes:
        at: Counted from 0.
        lms: Whose number it is: `Moodle`, `Canvas`, ...
        read: What a cell says (`Participant 12345`, `12345`) -> the number; empty for none.
        is_id: Students may be listed by it as well. (Of others, a student's number may by chance be
            somebody's number in the LMS.)
    """

    at: int
    lms: str
    read: Callable[[str], str] = last_number
    is_id: bool = False


@dataclass(frozen=True)
class Candidate:
    """A result for which a row is looked for.

    Attributes:
        origin: Which upload it is of; of an earlier version's result nothing is noted.
        held: Nobody knows whose it is: no row is its own.
        decided: A person said whose it is, which outranks the number that the LMS gave the upload.
    """

    student_id: str
    origin: Origin = field(default_factory=Origin)
    held: bool = False
    decided: bool = False

    @property
    def is_noted(self) -> bool:
        """Whether it is known which upload it is of."""
        return bool(self.origin.key)

    def number_in(self, lms: str) -> str:
        """The LMS's own number of whoever handed it in; empty where that is not known."""
        return self.origin.number if self.origin.lms == lms else ""


@dataclass(frozen=True)
class Matching:
    """Rows and students, as far as they are one another's.

    Attributes:
        students: Row -> student id.
        unknown: Rows without a result.
        absent: Students without a row, sorted.
        doubts: Row -> a sentence: it fits several students, or its student fits several rows.
        held: Row without a result of its own -> the results that may be its own, and that are held, sorted.
    """

    students: Mapping[int, str]
    unknown: tuple[int, ...]
    absent: tuple[str, ...]
    doubts: Mapping[int, str]
    held: Mapping[int, tuple[str, ...]]


def candidates(results: Iterable[tuple[Evidence, Score]]) -> tuple[Candidate, ...]:
    """Results as rows are looked for, sorted by student."""
    made = (
        Candidate(
            score.student_id,
            evidence.origin,
            score.held,
            score.ownership is not None and score.ownership.decided,
        )
        for evidence, score in results
    )
    return tuple(sorted(made, key=lambda one: one.student_id))


def matching(
    table: CsvText,
    rows: Sequence[int],
    columns: Sequence[int],
    number: NumberColumn | None,
    results: Iterable[Candidate],
) -> Matching:
    """Match rows with students.

    A row is a student's whose upload has the row's number in the LMS, whatever id the upload carries. Of
    others it is if one of its cells is the student's id (an ID number, a SIS user id, a login), or the part
    of an e-mail address before the @, written as ids are. Whose a submission is by a person's word goes by
    the id first.

    Args:
        rows: The rows of students, counted from 0.
        columns: Those that tell who it is.
        number: The column of the LMS's own number; None where there is none.
        results: Of the class.
    """
    found = sorted(results, key=lambda one: one.student_id)
    owned = [one for one in found if not one.held]
    lms = number.lms if number else ""
    numbers = {row: number.read(table.cell(row, number.at)) if number else "" for row in rows}
    texts = [at for at in columns if number is None or number.is_id or at != number.at]
    keys = {row: _keys(table, row, texts) for row in rows}
    fits = _by_number(owned, numbers, lms)
    placed = {student_id for students in fits.values() for student_id in students}
    _by_text([one for one in owned if one.student_id not in placed], keys, fits)
    _by_label([one for one in owned if not one.is_noted], numbers, fits)
    _by_number_alone(owned, numbers, lms, fits)
    claims: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        for student_id in fits[row]:
            claims[student_id].append(row)
    doubts = {row: _doubt(table, row, sorted(fits[row]), claims) for row in rows}
    held = _held([one for one in found if one.held], numbers, keys, lms)
    return Matching(
        students={row: next(iter(fits[row])) for row in rows if len(fits[row]) == 1 and not doubts[row]},
        unknown=tuple(row for row in rows if not fits[row] and row not in held),
        absent=tuple(one.student_id for one in owned if one.student_id not in claims),
        doubts={row: doubt for row, doubt in doubts.items() if doubt},
        held={row: students for row, students in held.items() if not fits[row]},
    )


Fits = dict[int, set[str]]
"""Row -> the students that it fits."""


def _by_number(owned: Sequence[Candidate], numbers: Mapping[int, str], lms: str) -> Fits:
    """By the number that the LMS gave both the row and the upload."""
    students: dict[str, set[str]] = defaultdict(set)
    for one in owned:
        if (told := one.number_in(lms)) and not one.decided:
            students[told].add(one.student_id)
    return {row: set(students.get(told, ())) for row, told in numbers.items()}


def _by_text(owned: Iterable[Candidate], keys: Mapping[int, set[str]], fits: Fits) -> None:
    """By the student's id in the row."""
    exact = {one.student_id.casefold(): one.student_id for one in owned}
    for row, texts in keys.items():
        fits[row] |= {exact[text] for text in texts if text in exact}


def _by_label(unnoted: Iterable[Candidate], numbers: Mapping[int, str], fits: Fits) -> None:
    """By the LMS's number at the end of the label that stands for an id in results of earlier versions."""
    labels: dict[str, set[str]] = defaultdict(set)
    for one in unnoted:
        if label := _LABEL.match(one.student_id):
            labels[label["number"]].add(one.student_id)
    for row, told in numbers.items():
        fits[row] |= labels.get(told, set()) if told else set()


def _by_number_alone(owned: Sequence[Candidate], numbers: Mapping[int, str], lms: str, fits: Fits) -> None:
    """By the number of the upload, or one that stands for an id, where nothing else tells whose a row is."""
    taken = {student_id for students in fits.values() for student_id in students}
    alone = {one.student_id: one.student_id for one in owned if not one.is_noted}
    alone |= {one.number_in(lms): one.student_id for one in owned if one.decided and one.number_in(lms)}
    for row, told in numbers.items():
        student_id = alone.get(told)
        if student_id is not None and not fits[row] and student_id not in taken:
            fits[row].add(student_id)


def _held(
    held: Iterable[Candidate], numbers: Mapping[int, str], keys: Mapping[int, set[str]], lms: str
) -> dict[int, tuple[str, ...]]:
    """The rows that may be those of results of which nobody knows whose they are."""
    found: dict[int, list[str]] = defaultdict(list)
    for one in held:
        told, carried = one.number_in(lms), one.origin.carries.casefold()
        for row, known in numbers.items():
            if (told and told == known) or (carried and carried in keys[row]):
                found[row].append(one.student_id)
    return {row: tuple(sorted(students)) for row, students in found.items()}


def _keys(table: CsvText, row: int, columns: Iterable[int]) -> set[str]:
    """How the id of whoever a row is about may be written."""
    texts = [table.cell(row, at) for at in columns if table.header[at].casefold() not in _NAMES]
    texts += [text.partition("@")[0] for text in texts if "@" in text]
    return {sanitized(plain(text)).casefold() for text in texts if text}


def _doubt(table: CsvText, row: int, found: Sequence[str], claims: Mapping[str, Sequence[int]]) -> str:
    where = f"{table.name}, row {row + 1}"
    if len(found) > 1:
        return f"{where}: fits {' and '.join(found)}"
    others = [other + 1 for student_id in found for other in claims[student_id] if other != row]
    if others:
        return f"{where}: fits {found[0]}, and so does row {others[0]}"
    return ""
