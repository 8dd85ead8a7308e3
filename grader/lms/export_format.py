"""A format in which grades or reports leave for an LMS or another program: its options, and who writes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.lms.matching import Candidate

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
        into: The file that the LMS made; None where none is of use.
        options: Besides those that every format has.
        noun: What an export holds, in the plural.
        several: The pattern of the files of an export of several files; empty where it is a single one.
    """

    name: str
    help: str
    write: Callable[[Order], Export]
    into: InputFile | None = None
    options: tuple[Option, ...] = ()
    noun: str = "grades"
    several: str = ""
