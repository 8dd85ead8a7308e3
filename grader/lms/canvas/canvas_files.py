"""Reads the names in Canvas's download of submissions, and fills in its gradebook.

lib/content_zipper.rb makes `NAME[_LATE]_USER_ATTACHMENT_FILE`, where NAME is the sortable name in small
letters, reduced to word characters; anonymous submissions are `[LATE_]anon_ID_ATTACHMENT_FILE`. A text is
`NAME[_LATE]_USER_text.html`, and an address is `..._link.html`. The download holds only the newest
submission of a user. A name that a student uses again gets `-1`, ... (`make_unique_filename` in
app/models/attachment.rb), and attachments are numbered in the order of their upload.

A FILE may contain underscores and digits, and so may a NAME, which people choose (`Doe, John__42__99`
becomes `doejohn_42_99`: the zipper removes numbers only once). A single name then does not show which of
several pairs of numbers are Canvas's own.

lib/gradebook_exporter.rb writes `Student` (or `LastName`, `FirstName`), `ID`, SIS columns, `Section`, a
column for each assignment as `Title (id)`, then totals. Below the header comes the row `Points Possible`,
sometimes after a row that says which grades are hidden. lib/gradebook_importer.rb creates a new assignment
for any other title, ignores columns that are `(read only)`, compares grades to two decimals, and reads `EX`
as excused; `N/A` stands for a student without the assignment.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from grader.domain.errors import UsageError
from grader.files.csv_text import CsvText, csv_text
from grader.lms.export_format import (
    ANYWAY,
    COLUMN,
    SCALE,
    Export,
    ExportData,
    ExportFormat,
    Form,
    InputFile,
    filled,
    the_column,
)
from grader.lms.matching import NumberColumn
from grader.lms.system import ClassListForm, DownloadName, Together, has_columns

LMS = "Canvas"
ANONYMOUS = re.compile(r"anon_[a-z0-9]{3,12}", re.IGNORECASE)
_USER = r"(?:(?P<user>\d{2,20})|anon_(?P<anonym>[A-Za-z0-9]{3,12}))"
_UPLOAD = re.compile(
    rf"^(?:(?P<who>\w+?)_)??(?P<late>LATE_)?{_USER}_"
    r"(?:(?P<attachment>\d{2,20})_(?P<name>.*\D.*)|(?P<entry>(?:text|link)\.html))$"
)
# another pair of numbers, or the number of a text: Canvas's own if the part before it is a NAME
_PAIR = re.compile(
    r"_(?=(?P<user>[1-9]\d{1,19})_(?:(?P<attachment>[1-9]\d{1,19})_.*\D|(?:text|link)\.html$))"
)
MOST_CONTESTED = 0.25  # of the users: a rule by which more of them are in doubt is not used
TOLERANCES = (2, 1, 0)  # digits


def canvas_name(name: str) -> DownloadName | None:
    """What a name in a Canvas download says by its first numbers, or None if Canvas did not make it."""
    match = _UPLOAD.match(name)
    if match is None or (match["who"] is None and match["anonym"] is None):
        return None
    label = f"anon_{match['anonym']}" if match["anonym"] else f"{match['who']}_{match['user']}"
    return DownloadName(
        name=match["name"] or match["entry"],
        sender_label=label,
        lms=LMS,
        sender_key=label if match["anonym"] else match["user"],
        number=match["user"] or "",
        sender_name=match["who"] or "",
        late=match["late"] is not None,
        order=int(match["attachment"] or 0),
    )


@dataclass(frozen=True)
class _Reading:
    """A way to read a name: the numbers that would be Canvas's own."""

    user: str
    attachment: str


@dataclass(frozen=True)
class _Name:
    """A name with all ways to read it, the usual one first."""

    name: str
    download_name: DownloadName
    readings: Sequence[_Reading]

    @property
    def user(self) -> str:
        """The user by the usual reading, with the name, as in all files of that user."""
        return self.download_name.sender_label or ""


def read_together(files: Mapping[str, Path]) -> Together:
    """What the names in one folder say in combination: which of them do not identify a user."""
    return Together(contested(files))


def contested(names: Iterable[str]) -> dict[str, DownloadName]:
    """The names of a download that may be another user's, each with the rest of what it says, without a user.

    A name is contested in three cases: another pair of numbers has as many digits as Canvas's numbers in
    the other names; two files share the number of an attachment; or, among the rest, one number has two
    users' names.

    Args:
        names: Of all files in one folder.
    """
    all_names = [
        _Name(name, usual_reading, _readings(name))
        for name in names
        if (usual_reading := canvas_name(name)) and usual_reading.number
    ]
    doubtful = {
        candidate.name: candidate for candidate in [*_by_digits(all_names), *_by_attachment(all_names)]
    }
    doubtful |= {
        candidate.name: candidate
        for candidate in _by_user([candidate for candidate in all_names if candidate.name not in doubtful])
    }
    return {
        name: replace(candidate.download_name, sender_key=f"{candidate.user}?", number="", order=0)
        for name, candidate in doubtful.items()
    }


def _readings(name: str) -> Sequence[_Reading]:
    usual = _UPLOAD.match(name)
    assert usual is not None, "Canvas made it"
    begins = usual.start("user")
    other_readings = [
        _Reading(pair["user"], pair["attachment"] or "")
        for pair in _PAIR.finditer(name)
        if pair.start("user") > begins
    ]
    return [_Reading(usual["user"] or "", usual["attachment"] or ""), *other_readings]


def _by_digits(all_names: Sequence[_Name]) -> Sequence[_Name]:
    """The names in which another pair looks like Canvas's own, by the widest tolerance with few doubts."""
    users = {len(candidate.readings[0].user) for candidate in all_names}
    attachments = {len(candidate.readings[0].attachment) for candidate in all_names}
    most_users = max(1, MOST_CONTESTED * len({candidate.user for candidate in all_names}))
    for tolerance in TOLERANCES:
        doubtful = [
            candidate
            for candidate in all_names
            if any(
                _is_near(len(reading.user), users, tolerance)
                and (not reading.attachment or _is_near(len(reading.attachment), attachments, tolerance))
                for reading in candidate.readings[1:]
            )
        ]
        if len({candidate.user for candidate in doubtful}) <= most_users:
            return doubtful
    return []


def _is_near(length: int, lengths: Iterable[int], tolerance: int) -> bool:
    return any(abs(length - other) <= tolerance for other in lengths)


def _by_attachment(all_names: Sequence[_Name]) -> Iterator[_Name]:
    """The names that share an attachment's number, which should be unique."""
    numbers = Counter(candidate.readings[0] for candidate in all_names if candidate.readings[0].attachment)
    yield from (
        candidate
        for candidate in all_names
        if numbers[candidate.readings[0]] > 1 and len(candidate.readings) > 1
    )


def _by_user(all_names: Sequence[_Name]) -> Iterator[_Name]:
    """The names whose number belongs to two users' names."""
    names_by_number: dict[str, set[str]] = {}
    for candidate in all_names:
        names_by_number.setdefault(candidate.readings[0].user, set()).add(candidate.download_name.sender_name)
    yield from (candidate for candidate in all_names if len(names_by_number[candidate.readings[0].user]) > 1)


# --- gradebook columns -----------------------------------------------------------------------------------


_TITLE = re.compile(r"^(?P<title>.*)\((?P<id>\d+)\)$")
_TEST_STUDENT = "Student, Test"  # a teacher who views the course as a student
_SPECIAL = {"EX": "is excused in Canvas", "N/A": "does not have this assignment in Canvas"}


def canvas(export_data: ExportData) -> Export:
    """The exported gradebook with the grades filled in.

    Raises:
        UsageError: The file is not a gradebook, or does not fit the grades.
    """
    name, content = export_data.lms_file
    table = csv_text(name, content)
    id_column = _id_column(table)
    section = table.header.index("Section")
    titles = [
        column for column in range(section + 1, len(table.header)) if _TITLE.match(table.header[column])
    ]
    grade_column = the_column(
        table, export_data.choices.column or export_data.assignment.title, titles, _column_names
    )
    maximum = _points_possible(table, grade_column)
    students = [
        row
        for row in range(1, len(table.rows))
        # the row on hidden grades begins with empty cells, in any language
        if any(table.cell(row, column) for column in range(section)) and not _tells_maximum(table, row)
    ]
    form = Form(
        table=table,
        students=students,
        who=[column for column in range(section) if column != id_column],
        number=NumberColumn(id_column, LMS),
        grade=grade_column,
        maximum=lambda _: maximum,
        keep=partial(_reason_to_keep, table, grade_column),
    )
    export = filled(form, export_data)
    remarks = () if maximum else (f"{name} does not state the points possible, so no maximum was compared.",)
    return replace(export, remarks=(*export.remarks, *remarks))


def _reason_to_keep(table: CsvText, grade: int, row: int) -> str:
    return _SPECIAL.get(table.cell(row, grade).upper(), "")


def _id_column(table: CsvText) -> int:
    """The column of Canvas's own user id.

    Raises:
        UsageError: The importer would not recognize the header.
    """
    first = table.header[:3]
    split = first[:2] == ("LastName", "FirstName")
    column = 2 if split else 1
    if len(first) <= column or first[column] != "ID" or not (split or "Student" in first[0]):
        raise UsageError(
            f"{table.name} is not a gradebook of Canvas: its first columns are not Student and ID. "
            "In Canvas: Grades, Export, Export Entire Gradebook."
        )
    if "Section" not in table.header:
        raise UsageError(
            f"{table.name} has no column 'Section', without which Canvas refuses it. Export it again."
        )
    return column


def _points_possible(table: CsvText, grade: int) -> str:
    """The assignment's maximum as written; empty if there is no such row.

    Raises:
        UsageError: Canvas says that the column is read only.
    """
    row = next((row for row in range(1, len(table.rows)) if _tells_maximum(table, row)), None)
    maximum = "" if row is None else table.cell(row, grade)
    if re.search(r"read\s+only", maximum):
        raise UsageError(
            f"{table.name}, column '{table.header[grade]}': Canvas does not read it. Choose another --column."
        )
    return maximum


def _tells_maximum(table: CsvText, row: int) -> bool:
    return "Points Possible" in table.cell(row, 0)


def _column_names(header: str) -> Sequence[str]:
    match = _TITLE.match(header)
    return [header, match["title"].strip(), match["id"]] if match else [header]


def _is_student(table: CsvText, header: Sequence[str], row: int) -> bool:
    # the row on hidden grades begins with empty cells, in any language
    if not any(table.cell(row, column) for column in range(header.index("section"))):
        return False
    return not _tells_maximum(table, row) and table.cell(row, 0) != _TEST_STUDENT


CLASS_LIST = ClassListForm(
    is_own=has_columns("id", "section"),
    numbers=("sis user id",),
    logins=("sis login id", "login id"),
    number="id",
    is_student=_is_student,
)
GRADEBOOK = ExportFormat(
    name="canvas",
    help="""Fill the assignment's column of Canvas's gradebook.

    It gets the grades of the results folder OUT. The column is the one with the assignment's title; --column
    names another by its title or its number. Everything else stays unchanged, including excused students.

    \b
    Example:
      grader export canvas results --into gradebook.csv --column "Lab 8"
    """,
    write=canvas,
    template=InputFile("The gradebook as Canvas exported it."),
    options=(COLUMN, SCALE, ANYWAY),
)
