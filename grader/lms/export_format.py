"""Formats in which grades or reports leave the grader, and the table of an LMS that is filled.

It holds what a format is: its options, the grades it is given, and who writes it. It fills the column of
an LMS's table with grades, scaled and written as the table has them; every other cell stays as it is.
Which grades are told, it never decides.
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
        what: What it says, in a sentence.
        metavar: What stands for its value; empty for one that has none.
        values: The only values that it takes, if there are such.
        default: Its value where it is not given.
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
    """What the operator chose.

    Attributes:
        column: The column of the grades, by its name; empty: the one that is known to be it.
        scale: Grades are scaled where the LMS has another maximum.
        anyway: Rows in doubt stay as they are instead of stopping everything, and grades may fall.
        others: The values of a format's own options, by their names.
    """

    column: str = ""
    scale: bool = False
    anyway: bool = False
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Grade:
    """A student's grade as an LMS is told it.

    Attributes:
        points: After the penalty for lateness; None when nobody knows it.
        maximum: Of the assignment.
        reason: Why there are no points, as the end of a sentence.
        waits: A person, or another run, can still decide it.
    """

    student_id: str
    points: float | None
    maximum: float
    reason: str = ""
    waits: bool = False


@dataclass(frozen=True)
class Order:
    """What is to be written.

    Attributes:
        results: Of the class, those among them of which nobody knows whose they are.
        grades: Student id -> the grade, of all whose results leave; sorted.
        candidates: The results as rows are looked for.
        file: The name and the content of the file that the LMS made; None where none was given.
        reports: Student ids -> the reports of those who have one.
        account: (Where a file lay in a download, whose it is) of every file.
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
    def given(self) -> tuple[str, bytes]:
        """The file, of a format that cannot do without it."""
        assert self.file is not None, "the format demands it"
        return self.file


@dataclass(frozen=True)
class Export:
    """What an export came to.

    Attributes:
        files: Name -> content. Of a format of several files, each lies below the export's folder.
        count: Of how many grades, reports or students it is.
        remarks: A line for each row, student or grade that somebody should know of.
        grades: Student id -> the grade that students see by it.
    """

    files: Mapping[str, bytes]
    count: int
    remarks: tuple[str, ...] = ()
    grades: Mapping[str, float] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """Of the only file."""
        (content,) = self.files.values()
        return content


@dataclass(frozen=True)
class InputFile:
    """The file that an LMS made, which a format fills or reads names in.

    Attributes:
        what: What it is, in a sentence.
        required: Nothing can be written without it.
    """

    what: str
    required: bool = True


@dataclass(frozen=True)
class ExportFormat:
    """A format of `grader export`.

    Attributes:
        name: Of the subcommand.
        help: The subcommand's help, as click takes it.
        write: Writes it, or raises `UsageError` where it cannot.
        template: The file that the LMS made (`--into`); None where none is of use.
        options: Besides those that every format has.
        noun: What an export holds, in the plural.
        several: The pattern of the files of an export of several files; empty where it is a single one.
    """

    name: str
    help: str
    write: Callable[[Order], Export]
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
    """A table that is to be filled, as its format says.

    Attributes:
        students: The rows of students, counted from 0.
        who: The columns that tell who it is.
        number: The LMS's own number of a student; None where the table has none.
        grade: The column that is filled.
        maximum: Row -> the maximum that the LMS knows, as written; empty where it tells none.
        keep: Row -> why its cell must stay as it is; empty when it need not.
        is_ungraded: What a cell says -> whether there is no grade in it yet.
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
        """Whose numbers it has; empty where it has none."""
        return self.number.lms if self.number else ""

    def place(self, row: int) -> str:
        """The name of a row: its number as a spreadsheet counts, and whose it is."""
        return f"{self.table.name}, row {row + 1} ({self.table.cell(row, self.who[0]) or 'nobody'})"


def the_column(
    table: CsvText, wanted: str, among: Sequence[int], names: Callable[[str], Sequence[str]]
) -> int:
    """The one column that is meant.

    Args:
        wanted: A name; case and space around it do not matter.
        among: The columns that come into question.
        names: Header -> what a column with that header may be called.

    Raises:
        UsageError: None is meant, or several are.
    """
    asked = wanted.strip().casefold()
    found = [at for at in among if asked in (name.casefold() for name in names(table.header[at]))]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"'{table.header[at]}'" for at in among) or "none that may hold grades"
    what = f"has no column '{wanted}'" if not found else f"has {len(found)} columns '{wanted}'"
    raise UsageError(f"{table.name} {what}. Name one by --column; there are: {known}.")


def filled(form: Form, order: Order) -> Export:
    """The table with the grades in its column.

    Raises:
        UsageError: A row fits several students, a maximum is another, or a grade would fall. Each sentence
            names its row.
    """
    table, grades, choices = form.table, order.grades, order.choices
    match = matching(table, form.students, form.who, form.number, order.candidates)
    if match.doubts and not choices.anyway:
        raise UsageError(
            "\n".join(
                [
                    *(f"{doubt}." for doubt in match.doubts.values()),
                    "Nothing was written. Fix the ids, or leave these rows as they are by --anyway.",
                ]
            )
        )
    _require_maximum(form, match, grades, choices)
    comma = _decimal_comma(form)
    changes: dict[tuple[int, int], str] = {}
    remarks: list[str] = []
    lower: list[str] = []
    left: dict[str, float] = {}
    for row, student_id in match.students.items():
        grade, old = grades[student_id], table.cell(row, form.grade)
        if grade.points is None:
            remarks.append(f"{form.place(row)}: {student_id} has no grade ({grade.reason}); {_STAYS}")
            continue
        if kept := form.keep(row) or _unreadable(form, old):
            remarks.append(f"{form.place(row)}: {kept}; {_STAYS}")
            continue
        new, before = _scaled(grade, form.maximum(row), choices), number(old)
        left[student_id] = grade.points
        if before is not None and rounded(before) == new:
            continue
        if before is not None:
            told = f"{form.place(row)}: {old} becomes {points(new)}"
            (lower if new < before else remarks).append(told)
        changes[row, form.grade] = points(new).replace(".", ",") if comma else points(new)
    if lower and not choices.anyway:
        raise UsageError(
            "\n".join(
                [*(f"{one}, which is less." for one in lower), "Nothing was written. If meant, add --anyway."]
            )
        )
    remarks += [*lower, *_listed(form, match, order.candidates)]
    return Export({table.name: table.with_cells(changes)}, len(left), tuple(remarks), left)


FEW = 3  # students of another LMS who are named
_STAYS = "its cell stays as it was"


def _listed(form: Form, match: Matching, candidates: Iterable[Candidate]) -> list[str]:
    """The rows and students that have nothing to do with one another.

    Those who handed in through another LMS are told in one line: their rows are in that LMS's file.
    """
    through = {one.student_id: one.origin.lms for one in candidates}
    elsewhere = [one for one in match.absent if form.lms and through.get(one, "") not in ("", form.lms)]
    others = listed(sorted({through[one] for one in elsewhere}))
    alone = [one for one in match.absent if len(elsewhere) < FEW or one not in elsewhere]
    return [
        *(f"{doubt}; {_STAYS}" for doubt in match.doubts.values()),
        *(f"{form.place(row)}: {unsaid(students)}; {_STAYS}" for row, students in match.held.items()),
        *(f"{form.place(row)}: has no result; {_STAYS}" for row in match.unknown),
        *(f"{student_id}: has no row in {form.table.name}" for student_id in alone),
        *(
            [f"{len(elsewhere)} students who handed in by {others} have no row in {form.table.name}"]
            if len(elsewhere) >= FEW
            else []
        ),
    ]


def unsaid(students: Sequence[str]) -> str:
    """That nobody knows whose some submissions are, which may be a row's."""
    verb = "is" if len(students) == 1 else "are"
    return f"nobody has said whose {listed(list(students))} {verb}"


def number(text: str) -> float | None:
    """The number that a cell holds, with a point or a comma before the decimals; None for anything else."""
    found = _NUMBER.fullmatch(text.strip())
    return float(f"{found[1]}.{found[3] or 0}") if found else None


def _unreadable(form: Form, old: str) -> str:
    """Why what stands in a cell is not to be overwritten."""
    known = form.is_ungraded(old) or number(old) is not None
    return "" if known else f"holds '{old}', which is not a number"


def _decimal_comma(form: Form) -> bool:
    """Whether the table writes a comma before the decimals, as its site's language has it."""
    cells = (text for row in form.students for text in (form.maximum(row), form.table.cell(row, form.grade)))
    marks = {found[2] for text in cells if (found := _NUMBER.fullmatch(text))}
    return "," in marks and "." not in marks


def _scaled(grade: Grade, told: str, choices: Choices) -> float:
    assert grade.points is not None
    most = number(told)
    if not choices.scale or most is None or grade.maximum == 0:
        return rounded(grade.points)
    return rounded(grade.points * most / grade.maximum)


def _require_maximum(form: Form, match: Matching, grades: Mapping[str, Grade], choices: Choices) -> None:
    """Refuse a maximum that is not the assignment's, unless grades are scaled."""
    for row, student_id in match.students.items():
        told = form.maximum(row)
        if not told:
            if choices.scale:
                raise UsageError(f"{form.table.name} does not tell its maximum: leave --scale out.")
            continue
        most, ours = number(told), grades[student_id].maximum
        if most is None:
            raise UsageError(
                f"{form.place(row)}: the maximum '{told}' is not a number, so points cannot be filled in. "
                "Let the LMS grade this assignment by points."
            )
        if rounded(most) != ours and not choices.scale:
            raise UsageError(
                f"{form.place(row)}: the maximum is {told} there and {points(ours)} here. "
                "Change it in the LMS and download the file again, or scale the grades by --scale."
            )
