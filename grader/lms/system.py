"""A learning management system (LMS) as the grader knows it; `grader.lms` lists one value for each.

It describes an LMS: the names in its downloads, its metadata, its class lists and its formats. From the list
of submissions in an LMS's export it decides which of a student's submissions counts, and who shares it.
Each LMS's own behavior is in its own module.
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
        students: The ids of those who handed it in, as the LMS knows them; empty if it knows none.
        created_at: When it was handed in.
        earlier: How many earlier attempts the LMS has that are not in the export.
        names: The LMS's names for the students, in their order; empty if it gives none.
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
        by_folder: The submissions by the names of their folders.
        last: The folder that counts for each student.
    """

    lms: str
    by_folder: dict[str, ListedSubmission]
    last: dict[str, str]

    def owner(self, folder: str) -> str | None:
        """The student under whose id a submission is listed: the first for whom it counts."""
        students = self.by_folder[folder].students
        counting = [student for student in students if self.last[student] == folder]
        return next(iter([*counting, *students]), None)

    def counting(self, folder: str) -> str:
        """The submission that counts for the owner of `folder`, which may be `folder` itself."""
        owner = self.owner(folder)
        return folder if owner is None else self.last[owner]

    def members(self, folder: str) -> tuple[str, ...]:
        """Those besides the owner for whom a submission counts."""
        owner = self.owner(folder)
        submitters = dict.fromkeys(self.by_folder[folder].students)
        return tuple(student for student in submitters if student != owner and self.last[student] == folder)

    def shared(self, folder: str) -> list[str]:
        """Sentences for the report about handing in together, and about earlier attempts."""
        submission = self.by_folder[folder]
        notes = []
        if len(submission.students) > 1:
            # only the class page names the others: no report names anybody else
            notes.append(
                f"Handed in together by {len(submission.students)} students: graded once, for each of them."
            )
        if submission.earlier:
            notes.append(
                f"{self.lms} has earlier attempts ({submission.earlier}), which are not in the export."
            )
        return notes

    def lacking(self, folders: Collection[str]) -> list[Lacking]:
        """The submissions of students who have nothing in the export.

        Args:
            folders: The names of the folders that are in it.
        """
        students_present = {
            student
            for folder, submission in self.by_folder.items()
            if folder in folders
            for student in submission.students
        }
        absent = [
            (student, folder) for student, folder in self.last.items() if student not in students_present
        ]
        absent += [
            (folder, folder) for folder, submission in self.by_folder.items() if not submission.students
        ]
        return [
            Lacking(sanitized(student), self.lms, folder, f"{self.lms}:{student}")
            for student, folder in absent
            if folder not in folders
        ]

    def notes(self, folders: Collection[str]) -> list[str]:
        """What a person should know about the export as a whole.

        Args:
            folders: The names of the folders that are in it.
        """
        notes = []
        for folder, submission in self.by_folder.items():
            others = self.members(folder)
            if folder not in folders:
                owners = ", ".join(submission.students) or "nobody known"
                notes.append(
                    f"{folder} of {owners} is listed by {self.lms} but is not in the export. Export it again."
                )
            elif others and self.counting(folder) == folder:
                notes.append(
                    f"{self.owner(folder)}: handed in together with {', '.join(others)}. It is graded once, "
                    "and each has a report."
                )
            elif not submission.students:
                notes.append(f"{folder}: {self.lms} knows no student id for it. Find out whose it is.")
        return notes


def submissions_sorted_by_time(lms: str, submissions: Iterable[ListedSubmission]) -> SubmissionList:
    """The list of an LMS, in which the latest of a student's submissions counts."""
    by_folder = {submission.folder: submission for submission in submissions}
    by_time = sorted(
        by_folder.values(), key=lambda submission: (submission.created_at or _LONG_AGO, submission.folder)
    )
    return SubmissionList(
        lms,
        by_folder,
        {student: submission.folder for submission in by_time for student in submission.students},
    )


# --- system ----------------------------------------------------------------------------------------------


MOST_ROWS = 5_000  # of the metadata of a download
Row = list[Any]
"""What an LMS's own file says about one submission, as plain JSON, because it comes from a parser."""


@dataclass(frozen=True)
class DownloadName:
    """The parts of the name of a file or a folder in a download.

    Attributes:
        name: The student's own name for it; empty for a folder that the LMS made.
        sender_label: The LMS's label of who handed it in; None if no LMS put anything before the name.
        lms: `Moodle`, `Canvas`, ..., or empty.
        sender_key: A key shared by all files of one sender: the LMS's number, if the label holds one.
        number: That number or login, if it is a person's; empty for a team, an anonymous label or a
            submission.
        sender_name: The sender's name in the label; empty if it holds none.
        late: The LMS marks it late, without saying by how much.
        order: Increases with each upload if the LMS counts them; otherwise 0.
        attempt: A key shared by all files of one attempt if the download holds several: later ones compare
            greater. Empty if it holds one attempt of each student.
        received_at: When the attempt was handed in; None if the LMS does not say.
        received_clock: The same, by a clock whose time zone the LMS does not state; without a zone.
    """

    name: str
    sender_label: str | None = None
    lms: str = ""
    sender_key: str = ""
    number: str = ""
    sender_name: str = ""
    late: bool = False
    order: int = 0
    attempt: str = ""
    received_at: datetime | None = None
    received_clock: datetime | None = None


@dataclass(frozen=True)
class Together:
    """What the files of one folder say only in combination.

    Attributes:
        names: File -> the meaning of its name, which replaces what the name says by itself.
        lms_files: A file of the LMS's own -> a sentence on what was read from it.
        attempts: Those that the LMS's own files list; some may have no file.
    """

    names: Mapping[str, DownloadName] = field(default_factory=dict)
    lms_files: Mapping[str, str] = field(default_factory=dict)
    attempts: tuple[DownloadName, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """An LMS's own file that lists the submissions of a download, each in its own folder.

    Attributes:
        file: Its name, in small letters.
        rows: (The file, its name for messages) -> its rows. This runs where a hostile file can do no harm,
            and raises `SubmissionError` if the file is not in the LMS's format.
        submissions: The rows, which may be forged, as the list.
    """

    file: str
    rows: Callable[[BinaryIO, str], list[Row]]
    submissions: Callable[[Sequence[Row]], SubmissionList]


@dataclass(frozen=True)
class ClassListForm:
    """How an LMS writes a class list. Names of columns are in small letters.

    Attributes:
        is_own: Header -> whether a table is this LMS's own.
        numbers: Columns of a student's number.
        logins: Columns of a student's login.
        number: The column of the LMS's own number of a student, as its downloads have it; empty: none.
        read_number: Text of such a cell -> the number; empty if there is none.
        number_is_id: Whether that number is a login by which students may also be listed.
        is_student: (Table, header, row) -> whether the row is a student's, as far as this LMS's lists say.
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
    """The `read_together` of an LMS whose names say everything by themselves."""
    return Together()


@dataclass(frozen=True)
class Lms:
    """A learning management system.

    Attributes:
        name: As people write it.
        read_name: The name of a file or a folder -> its meaning; None if this LMS did not make it.
        class_list: How it writes a class list.
        formats: The formats of grades and reports that it reads.
        read_together: The files of one folder, by their names -> what they say only in combination.
        metadata: Its file on all submissions of a download; None if it writes none.
        anonymous_label: The labels in its downloads that hold neither a person's name nor a person's
            number; None if there are none.
    """

    name: str
    read_name: Callable[[str], DownloadName | None]
    class_list: ClassListForm
    formats: tuple[ExportFormat, ...]
    read_together: Callable[[Mapping[str, Path]], Together] = nothing_together
    metadata: Metadata | None = None
    anonymous_label: re.Pattern[str] | None = None


def has_columns(*names: str) -> Callable[[Iterable[str]], bool]:
    """A function that says whether a header has all of these columns."""
    return lambda header: set(names) <= set(header)
