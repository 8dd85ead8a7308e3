"""A learning management system (LMS) as the grader knows it: a value each, listed in `grader.lms`.

It holds what is to be known of an LMS: the names in its downloads, its metadata, its lists of the class
and its formats. Of a list of submissions in an LMS's export it decides which of a student's counts, and
who shares it. What a single LMS does, its own module knows.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from grader.domain.submission import Lacking
from grader.files.csv_text import CsvText
from grader.files.file_names import sanitized
from grader.lms.export_format import ExportFormat
from grader.lms.matching import last_number

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class ListedSubmission:
    """One submission of an export.

    Attributes:
        folder: The name of its folder.
        students: The ids of those who handed it in, as the LMS knows them; empty where it knows none.
        created_at: When it was handed in.
        earlier: How many earlier attempts the LMS has that are not in the export.
        names: What the LMS calls the students, in their order; empty where it does not say.
    """

    folder: str
    students: tuple[str, ...]
    created_at: datetime | None
    earlier: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubmissionList:
    """The submissions of an export.

    Attributes:
        lms: Whose list it is.
        known: The submissions by the names of their folders.
        last: The folder that counts for each student.
    """

    lms: str
    known: dict[str, ListedSubmission]
    last: dict[str, str]

    def owner(self, folder: str) -> str | None:
        """The student under whose id a submission is listed: the first of those for whom it counts."""
        students = self.known[folder].students
        counting = [student for student in students if self.last[student] == folder]
        return next(iter([*counting, *students]), None)

    def counting(self, folder: str) -> str:
        """The submission that counts for the student under whose id `folder` is listed: maybe itself."""
        owner = self.owner(folder)
        return folder if owner is None else self.last[owner]

    def members(self, folder: str) -> tuple[str, ...]:
        """Those besides the owner for whom a submission counts."""
        owner = self.owner(folder)
        own = dict.fromkeys(self.known[folder].students)
        return tuple(one for one in own if one != owner and self.last[one] == folder)

    def shared(self, folder: str) -> list[str]:
        """What the report says of those who handed in together, and of attempts before this one."""
        one = self.known[folder]
        notes = []
        if len(one.students) > 1:
            # who the others are stands on the class page: no report names anybody else
            notes.append(
                f"Handed in together by {len(one.students)} students: graded once, for each of them."
            )
        if one.earlier:
            notes.append(f"{self.lms} has earlier attempts ({one.earlier}), which are not in the export.")
        return notes

    def lacking(self, there: Collection[str]) -> list[Lacking]:
        """The submissions of those of whom nothing is in the export.

        Args:
            there: The names of the folders that are in it.
        """
        present = {
            student for folder, one in self.known.items() if folder in there for student in one.students
        }
        whose = [(student, folder) for student, folder in self.last.items() if student not in present]
        whose += [(folder, folder) for folder, one in self.known.items() if not one.students]
        return [
            Lacking(sanitized(student), self.lms, folder, f"{self.lms}:{student}")
            for student, folder in whose
            if folder not in there
        ]

    def notes(self, there: Collection[str]) -> list[str]:
        """What a person should know of the export as a whole.

        Args:
            there: The names of the folders that are in it.
        """
        notes = []
        for folder, one in self.known.items():
            others = self.members(folder)
            if folder not in there:
                whose = ", ".join(one.students) or "nobody known"
                notes.append(
                    f"{folder} of {whose} is listed by {self.lms} and not in the export. Export it again."
                )
            elif others and self.counting(folder) == folder:
                notes.append(
                    f"{self.owner(folder)}: handed in together with {', '.join(others)}. It is graded once, "
                    "and each has a report."
                )
            elif not one.students:
                notes.append(f"{folder}: {self.lms} knows no student id for it. Find out whose it is.")
        return notes


def submissions_sorted_by_time(lms: str, submissions: Iterable[ListedSubmission]) -> SubmissionList:
    """The list of an LMS, sorted by time: of a student's submissions, the latest counts."""
    known = {one.folder: one for one in submissions}
    by_time = sorted(known.values(), key=lambda one: (one.created_at or _LONG_AGO, one.folder))
    return SubmissionList(lms, known, {student: one.folder for one in by_time for student in one.students})


# --- system ----------------------------------------------------------------------------------------------


MOST_ROWS = 5_000  # of the metadata of a download
Row = list[Any]
"""What an LMS's own file says of one submission, as plain JSON: it crosses from a parser."""


@dataclass(frozen=True)
class DownloadName:
    """The name of a file or a folder in a download, taken apart.

    Attributes:
        name: The student's own name for it; empty for a folder that the LMS made.
        holder: The LMS's label of who handed it in; None when no LMS put anything before the name.
        lms: `Moodle`, `Canvas`, ..., or empty.
        person: The same in all files of one holder: the LMS's number, where the label holds one.
        number: That number or login, where it is a person's; empty for a team's, an anonym's and a
            submission's.
        called: The holder's name in the label; empty where it holds none.
        late: The LMS marks it late, without saying by how much.
        order: Rises from upload to upload where the LMS counts them; 0 where it does not.
        attempt: The same in all files of one attempt where the download holds several: the text of a later
            one is greater. Empty where it holds one attempt of each student.
        received_at: When the attempt was handed in; None where the LMS does not say it.
        received_clock: The same by a clock whose time zone the LMS does not say; without a zone.
    """

    name: str
    holder: str | None = None
    lms: str = ""
    person: str = ""
    number: str = ""
    called: str = ""
    late: bool = False
    order: int = 0
    attempt: str = ""
    received_at: datetime | None = None
    received_clock: datetime | None = None


@dataclass(frozen=True)
class Together:
    """What the files of one folder tell only together.

    Attributes:
        names: File -> what its name tells, in the place of what it tells by itself.
        own: A file of the LMS's own -> the sentence on what was read in it.
        attempts: Those that the LMS's own files tell of: of some there may be no file.
    """

    names: Mapping[str, DownloadName] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    attempts: tuple[DownloadName, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """A file of the LMS's own that lists the submissions of a download, each in a folder of its own.

    Attributes:
        file: Its name, in small letters.
        rows: (The file, its name for sentences) -> what it says. This runs where a hostile file does no
            harm, and raises `SubmissionError` where the file is not what the LMS writes.
        submissions: The rows, which may be forged, as the list.
    """

    file: str
    rows: Callable[[BinaryIO, str], list[Row]]
    submissions: Callable[[Sequence[Row]], SubmissionList]


@dataclass(frozen=True)
class ClassListForm:
    """How an LMS writes a list of the class. Names of columns are in small letters.

    Attributes:
        is_own: Header -> whether a table is this LMS's own.
        numbers: Columns of a student's number.
        logins: Columns of what a student logs in by.
        number: The column of the LMS's own number of a student, as its downloads have it; empty: none.
        read_number: What such a cell says -> the number; empty for none.
        number_is_id: That number is a login by which students may be listed as well.
        is_student: (Table, header, row) -> whether a row is about a student, as far as this LMS's lists tell.
        has_submission: (Table, header, row) -> whether it says that the student handed in.
    """

    is_own: Callable[[Sequence[str]], bool]
    numbers: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    number: str = ""
    read_number: Callable[[str], str] = last_number
    number_is_id: bool = False
    is_student: Callable[[CsvText, Sequence[str], int], bool] = lambda *_: True
    has_submission: Callable[[CsvText, Sequence[str], int], bool] = lambda *_: False


def nothing_together(_: Mapping[str, Path]) -> Together:
    """Of an LMS whose names tell everything by themselves."""
    return Together()


@dataclass(frozen=True)
class Lms:
    """A learning management system.

    Attributes:
        name: As people write it.
        read_name: The name of a file or a folder -> what it tells; None when this LMS did not make it.
        class_list: How it writes a list of the class.
        formats: What it reads of grades and reports.
        read_together: The files of one folder, by their names -> what they tell only together.
        metadata: Its file on all submissions of a download; None where it writes none.
        label_without_name: The labels in its downloads in which no person's name is, though they hold no
            number of a person; None where there are none.
    """

    name: str
    read_name: Callable[[str], DownloadName | None]
    class_list: ClassListForm
    formats: tuple[ExportFormat, ...]
    read_together: Callable[[Mapping[str, Path]], Together] = nothing_together
    metadata: Metadata | None = None
    label_without_name: re.Pattern[str] | None = None


def has_columns(*names: str) -> Callable[[Iterable[str]], bool]:
    """Whether a header has all of these columns."""
    return lambda header: set(names) <= set(header)
