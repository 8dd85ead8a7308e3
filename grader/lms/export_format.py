"""Defines the formats in which grades or reports leave the grader, and fills in an LMS's table.

A format has options, gets grades, and names the function that writes it. The module fills the column of an
LMS's table with grades, scaled and formatted like the table; every other cell stays as it is. It never
decides which grades are given out.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import listed, points
from grader.domain.score import Score, rounded
from grader.files.csv_text import CsvText
from grader.lms.matching import Candidate, Matching, NumberColumn, matching

Results = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class Option:
    """An option of a format.

    Attributes:
        name: Without its dashes.
        what: Its description, in a sentence.
        metavar: The placeholder for its value; empty if it takes none.
        values: The only values that it takes, if they are limited.
        default: Its value if it is not given.
    """

    name: str
    what: str
    metavar: str = ""
    values: tuple[str, ...] = ()
    default: str = ""

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return not self.metavar and not self.values


COLUMN = Option("column", "The column of the grades.", metavar="NAME")
SCALE = Option("scale", "Scale the grades if the LMS has another maximum, instead of refusing.")
ANYWAY = Option(
    "anyway",
    "Write in spite of doubts: rows that fit several students stay as they are, and grades that "
    "stand in FILE may fall.",
)


@dataclass(frozen=True)
class Choices:
    """The operator's choices.

    Attributes:
        column: The name of the column of grades; empty: the usual one.
        scale: Grades are scaled if the LMS has another maximum.
        anyway: Doubtful rows stay as they are instead of stopping the export, and grades may fall.
        others: The values of a format's own options, by their names.
    """

    column: str = ""
    scale: bool = False
    anyway: bool = False
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Grade:
    """A student's grade as an LMS gets it.

    Attributes:
        points: After the penalty for lateness; None if unknown.
        maximum: Of the assignment.
        reason: Why there are no points, as the end of a sentence.
        waits: Whether a person, or another run, can still decide it.
    """

    student_id: str
    points: float | None
    maximum: float
    reason: str = ""
    waits: bool = False


@dataclass(frozen=True)
class ExportData:
    """What an export format writes, and what it needs for that.

    Attributes:
        results: Of the class, including those with an unknown owner.
        grades: Student id -> the grade, for all whose results are exported; sorted.
        candidates: The results to match with rows.
        file: The name and the content of the file that the LMS made; None if none was given.
        reports: Student ids -> the reports of those who have one.
        account: (Path in a download, owner) of every file.
    """

    assignment: Assignment
    results: Results
    grades: Mapping[str, Grade]
    candidates: tuple[Candidate, ...]
    file: tuple[str, bytes] | None = None
    choices: Choices = field(default_factory=Choices)
    reports: Callable[[Sequence[str]], Mapping[str, bytes]] = lambda _: {}
    account: tuple[tuple[str, str | None], ...] = ()

    @property
    def lms_file(self) -> tuple[str, bytes]:
        """The file, for a format that requires one."""
        assert self.file is not None, "the format demands it"
        return self.file


@dataclass(frozen=True)
class Export:
    """The result of an export.

    Attributes:
        files: Name -> content. If there are several, each lies below the export's folder.
        count: How many grades, reports or students it holds.
        remarks: A line for each row, student or grade that needs attention.
        grades: Student id -> the grade that the student sees by it.
    """

    files: Mapping[str, bytes]
    count: int
    remarks: tuple[str, ...] = ()
    grades: Mapping[str, float] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The content of the only file."""
        (content,) = self.files.values()
        return content


@dataclass(frozen=True)
class InputFile:
    """A file that an LMS made, which a format fills in or takes names from.

    Attributes:
        what: Its description, in a sentence.
        required: Nothing can be written without it.
    """

    what: str
    required: bool = True


@dataclass(frozen=True)
class ExportFormat:
    """A format of `grader export`.

    Attributes:
        name: The subcommand's name.
        help: The subcommand's help text for click.
        write: Writes it, or raises `UsageError` if it cannot.
        template: The file that the LMS made (`--into`); None if the format uses none.
        options: Besides those that every format has.
        noun: What an export holds, in the plural.
        several: The pattern of the files if an export has several; empty if it is a single file.
    """

    name: str
    help: str
    write: Callable[[ExportData], Export]
    template: InputFile | None = None
    options: tuple[Option, ...] = ()
    noun: str = "grades"
    several: str = ""


# --- filling ---------------------------------------------------------------------------------------------


_NUMBER = re.compile(r"(-?\d+)(?:([.,])(\d+))?")
_NO_GRADE = ("", "-")
Keep = Callable[[int], str]


def is_no_grade(old: str) -> bool:
    """Whether a cell of any LMS is empty."""
    return old in _NO_GRADE


@dataclass(frozen=True)
class Form:
    """A table to fill in, as its format describes it.

    Attributes:
        students: The rows of students, counted from 0.
        who: The columns that identify the student.
        number: The LMS's own number of a student; None if the table has none.
        grade: The column that is filled.
        maximum: Row -> the maximum in the LMS, as written; empty if the table does not state it.
        keep: Row -> why its cell must stay as it is; empty if it may change.
        is_ungraded: Text of a cell -> whether it holds no grade yet.
    """

    table: CsvText
    students: Sequence[int]
    who: Sequence[int]
    number: NumberColumn | None
    grade: int
    maximum: Callable[[int], str]
    keep: Keep = lambda _: ""
    is_ungraded: Callable[[str], bool] = is_no_grade

    @property
    def lms(self) -> str:
        """The LMS whose numbers it has; empty if it has none."""
        return self.number.lms if self.number else ""

    def place(self, row: int) -> str:
        """The name of a row in messages: its number as a spreadsheet counts, and whose it is."""
        return f"{self.table.name}, row {row + 1} ({self.table.cell(row, self.who[0]) or 'nobody'})"


def the_column(
    table: CsvText, wanted: str, among: Sequence[int], names: Callable[[str], Sequence[str]]
) -> int:
    """The one column that has a name.

    Args:
        wanted: The name; case and surrounding space do not matter.
        among: The columns to choose from.
        names: Header -> the possible names of a column with that header.

    Raises:
        UsageError: No column or several columns have the name.
    """
    asked_name = wanted.strip().casefold()
    matches = [
        column for column in among if asked_name in (name.casefold() for name in names(table.header[column]))
    ]
    if len(matches) == 1:
        return matches[0]
    choices = ", ".join(f"'{table.header[column]}'" for column in among) or "none that may hold grades"
    problem = f"has no column '{wanted}'" if not matches else f"has {len(matches)} columns '{wanted}'"
    raise UsageError(f"{table.name} {problem}. Name one with --column; there are: {choices}.")


def filled(form: Form, export_data: ExportData) -> Export:
    """The table with the grades in its column.

    Raises:
        UsageError: A row fits several students, a maximum differs, or a grade would fall. Each sentence names
            its row.
    """
    table, grades, choices = form.table, export_data.grades, export_data.choices
    match = matching(table, form.students, form.who, form.number, export_data.candidates)
    if match.doubts and not choices.anyway:
        raise UsageError(
            "\n".join(
                [
                    *(f"{doubt}." for doubt in match.doubts.values()),
                    "Nothing was written. Fix the ids, or leave these rows as they are with --anyway.",
                ]
            )
        )
    _require_maximum(form, match, grades, choices)
    comma = _decimal_comma(form)
    changes: dict[tuple[int, int], str] = {}
    remarks: list[str] = []
    falling: list[str] = []
    exported: dict[str, float] = {}
    for row, student_id in match.students.items():
        grade, old_text = grades[student_id], table.cell(row, form.grade)
        if grade.points is None:
            remarks.append(f"{form.place(row)}: {student_id} has no grade ({grade.reason}); {_STAYS}")
            continue
        if reason := form.keep(row) or _unreadable(form, old_text):
            remarks.append(f"{form.place(row)}: {reason}; {_STAYS}")
            continue
        new_points, old_points = _scaled(grade, form.maximum(row), choices), number(old_text)
        exported[student_id] = grade.points
        if old_points is not None and rounded(old_points) == new_points:
            continue
        if old_points is not None:
            change = f"{form.place(row)}: {old_text} becomes {points(new_points)}"
            (falling if new_points < old_points else remarks).append(change)
        changes[row, form.grade] = points(new_points).replace(".", ",") if comma else points(new_points)
    if falling and not choices.anyway:
        raise UsageError(
            "\n".join(
                [
                    *(f"{line}, which is less." for line in falling),
                    "Nothing was written. If meant, add --anyway.",
                ]
            )
        )
    remarks += [*falling, *_unmatched_remarks(form, match, export_data.candidates)]
    return Export({table.name: table.with_cells(changes)}, len(exported), tuple(remarks), exported)


FEW = 3  # students of another LMS who are named
_STAYS = "its cell stays as it was"


def _unmatched_remarks(form: Form, match: Matching, candidates: Iterable[Candidate]) -> list[str]:
    """Remarks on the rows and students that could not be matched.

    Those who handed in through another LMS share one line: their rows are in that LMS's file.
    """
    through = {candidate.student_id: candidate.origin.lms for candidate in candidates}
    elsewhere = [
        student for student in match.absent if form.lms and through.get(student, "") not in ("", form.lms)
    ]
    other_systems = listed(sorted({through[student] for student in elsewhere}))
    named = [student for student in match.absent if len(elsewhere) < FEW or student not in elsewhere]
    return [
        *(f"{doubt}; {_STAYS}" for doubt in match.doubts.values()),
        *(f"{form.place(row)}: {unsaid(students)}; {_STAYS}" for row, students in match.held.items()),
        *(f"{form.place(row)}: has no result; {_STAYS}" for row in match.unknown),
        *(f"{student_id}: has no row in {form.table.name}" for student_id in named),
        *(
            [f"{len(elsewhere)} students who handed in by {other_systems} have no row in {form.table.name}"]
            if len(elsewhere) >= FEW
            else []
        ),
    ]


def unsaid(students: Sequence[str]) -> str:
    """A clause that says that nobody knows whose some submissions are, one of which may be a row's."""
    verb = "is" if len(students) == 1 else "are"
    return f"nobody has said whose {listed(list(students))} {verb}"


def number(text: str) -> float | None:
    """The number that a cell holds, with a point or a comma before the decimals; None for anything else."""
    match = _NUMBER.fullmatch(text.strip())
    return float(f"{match[1]}.{match[3] or 0}") if match else None


def _unreadable(form: Form, old: str) -> str:
    """Why the text of a cell must not be overwritten."""
    readable = form.is_ungraded(old) or number(old) is not None
    return "" if readable else f"holds '{old}', which is not a number"


def _decimal_comma(form: Form) -> bool:
    """Whether the table has decimal commas, as in the language of its site."""
    cells = (text for row in form.students for text in (form.maximum(row), form.table.cell(row, form.grade)))
    marks = {match[2] for text in cells if (match := _NUMBER.fullmatch(text))}
    return "," in marks and "." not in marks


def _scaled(grade: Grade, maximum: str, choices: Choices) -> float:
    assert grade.points is not None
    most = number(maximum)
    if not choices.scale or most is None or grade.maximum == 0:
        return rounded(grade.points)
    return rounded(grade.points * most / grade.maximum)


def _require_maximum(form: Form, match: Matching, grades: Mapping[str, Grade], choices: Choices) -> None:
    """Refuse a maximum that is not the assignment's, unless grades are scaled."""
    for row, student_id in match.students.items():
        stated = form.maximum(row)
        if not stated:
            if choices.scale:
                raise UsageError(f"{form.table.name} does not state its maximum: leave --scale out.")
            continue
        most, own_maximum = number(stated), grades[student_id].maximum
        if most is None:
            raise UsageError(
                f"{form.place(row)}: the maximum '{stated}' is not a number, so points cannot be filled in. "
                "Let the LMS grade this assignment by points."
            )
        if most <= 0 < own_maximum:
            raise UsageError(
                f"{form.place(row)}: the maximum is {stated} there, and to that no grade can be scaled. "
                "Change it in the LMS and download the file again."
            )
        if rounded(most) != own_maximum and not choices.scale:
            raise UsageError(
                f"{form.place(row)}: the maximum is {stated} there and {points(own_maximum)} here. "
                "Change it in the LMS and download the file again, or scale the grades with --scale."
            )
