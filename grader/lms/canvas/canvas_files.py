"""Canvas's files: the names in its download of submissions, and its gradebook, filled in.

lib/content_zipper.rb makes `NAME[_LATE]_USER_ATTACHMENT_FILE`, where NAME is the sortable name in small
letters without anything but word characters; anonymous submissions are `[LATE_]anon_ID_ATTACHMENT_FILE`;
a text is `NAME[_LATE]_USER_text.html`, an address `..._link.html`. Only the newest submission of a user
is in it. A name that a student uses again gets `-1`, ... (`make_unique_filename` in
app/models/attachment.rb), and attachments are numbered in the order of their upload.

Underscores and digits may be in a NAME, which people choose (`Doe, John__42__99` becomes `doejohn_42_99`:
the zipper takes numbers out once only), and in a FILE. Which of several pairs of numbers are Canvas's own
then cannot be read from one name.

lib/gradebook_exporter.rb writes `Student` (or `LastName`, `FirstName`), `ID`, SIS columns, `Section`, a
column for each assignment as `Title (id)`, then totals; below the header perhaps a row on hidden grades,
and `Points Possible`. lib/gradebook_importer.rb makes a new assignment of any other title, ignores what
is `(read only)`, compares at two decimals, and takes `EX` for excused; `N/A` is a student without the
assignment.
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
    ExportFormat,
    Form,
    InputFile,
    Order,
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
# any further pair of numbers, or the number of a text: Canvas's own, if what stands before it is a NAME
_PAIR = re.compile(
    r"_(?=(?P<user>[1-9]\d{1,19})_(?:(?P<attachment>[1-9]\d{1,19})_.*\D|(?:text|link)\.html$))"
)
MOST_CONTESTED = 0.25  # of the users: a rule by which more of them are in doubt is no good
TOLERANCES = (2, 1, 0)  # digits


def canvas_name(name: str) -> DownloadName | None:
    """What a name in a Canvas download tells by its first numbers, or None when Canvas did not make it."""
    found = _UPLOAD.match(name)
    if found is None or (found["who"] is None and found["anonym"] is None):
        return None
    holder = f"anon_{found['anonym']}" if found["anonym"] else f"{found['who']}_{found['user']}"
    return DownloadName(
        name=found["name"] or found["entry"],
        holder=holder,
        lms=LMS,
        person=holder if found["anonym"] else found["user"],
        number=found["user"] or "",
        called=found["who"] or "",
        late=found["late"] is not None,
        order=int(found["attachment"] or 0),
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
    told: DownloadName
    readings: Sequence[_Reading]

    @property
    def user(self) -> str:
        """The user by the usual reading, with the name, as it stands in all of that user's files."""
        return self.told.holder or ""


def read_together(files: Mapping[str, Path]) -> Together:
    """What the names of the files of one folder tell together: of some, that they tell no user."""
    return Together(contested(files))


def contested(names: Iterable[str]) -> dict[str, DownloadName]:
    """The names of a download that may be another user's, each with what it tells all the same: no user.

    That is so where a further pair of numbers has as many digits as Canvas's numbers have in the names of the
    others; where two files have one number of an attachment; and, among the others, where one number has two
    users' names.

    Args:
        names: Of all files that lie side by side.
    """
    known = [
        _Name(name, told, _readings(name)) for name in names if (told := canvas_name(name)) and told.number
    ]
    doubtful = {one.name: one for one in [*_by_digits(known), *_by_attachment(known)]}
    doubtful |= {one.name: one for one in _by_user([one for one in known if one.name not in doubtful])}
    return {
        name: replace(one.told, person=f"{one.user}?", number="", order=0) for name, one in doubtful.items()
    }


def _readings(name: str) -> Sequence[_Reading]:
    first = _UPLOAD.match(name)
    assert first is not None, "Canvas made it"
    begins = first.start("user")
    more = [
        _Reading(found["user"], found["attachment"] or "")
        for found in _PAIR.finditer(name)
        if found.start("user") > begins
    ]
    return [_Reading(first["user"] or "", first["attachment"] or ""), *more]


def _by_digits(known: Sequence[_Name]) -> Sequence[_Name]:
    """Those in which a further pair looks like Canvas's own, by the loosest rule that doubts only a few."""
    users = {len(one.readings[0].user) for one in known}
    attachments = {len(one.readings[0].attachment) for one in known}
    most = max(1, MOST_CONTESTED * len({one.user for one in known}))
    for tolerance in TOLERANCES:
        found = [
            one
            for one in known
            if any(
                _near(len(reading.user), users, tolerance)
                and (not reading.attachment or _near(len(reading.attachment), attachments, tolerance))
                for reading in one.readings[1:]
            )
        ]
        if len({one.user for one in found}) <= most:
            return found
    return []


def _near(length: int, lengths: Iterable[int], tolerance: int) -> bool:
    return any(abs(length - other) <= tolerance for other in lengths)


def _by_attachment(known: Sequence[_Name]) -> Iterator[_Name]:
    """Those that share an attachment's number, of which each file has its own."""
    numbers = Counter(one.readings[0] for one in known if one.readings[0].attachment)
    yield from (one for one in known if numbers[one.readings[0]] > 1 and len(one.readings) > 1)


def _by_user(known: Sequence[_Name]) -> Iterator[_Name]:
    """Those whose number has two users' names."""
    called: dict[str, set[str]] = {}
    for one in known:
        called.setdefault(one.readings[0].user, set()).add(one.told.called)
    yield from (one for one in known if len(called[one.readings[0].user]) > 1)


# --- gradebook columns -----------------------------------------------------------------------------------


_TITLE = re.compile(r"^(?P<title>.*)\((?P<id>\d+)\)$")
_TEST_STUDENT = "Student, Test"  # of a teacher who looks at the course as a student
_SPECIAL = {"EX": "is excused in Canvas", "N/A": "does not have this assignment in Canvas"}


def canvas(order: Order) -> Export:
    """The gradebook that Canvas exported with the grades in it.

    Raises:
        UsageError: The file is not a gradebook, or does not fit the grades.
    """
    name, content = order.given
    table = csv_text(name, content)
    number = _id_column(table)
    section = table.header.index("Section")
    titles = [at for at in range(section + 1, len(table.header)) if _TITLE.match(table.header[at])]
    grade = the_column(table, order.choices.column or order.assignment.title, titles, _called)
    most = _points_possible(table, grade)
    students = [
        row
        for row in range(1, len(table.rows))
        # the row on hidden grades begins with empty cells, in any language
        if any(table.cell(row, at) for at in range(section)) and not _tells_maximum(table, row)
    ]
    form = Form(
        table=table,
        students=students,
        who=[at for at in range(section) if at != number],
        number=NumberColumn(number, LMS),
        grade=grade,
        maximum=lambda _: most,
        keep=partial(_kept, table, grade),
    )
    export = filled(form, order)
    known = () if most else (f"{name} does not tell the points possible, so no maximum was compared.",)
    return replace(export, remarks=(*export.remarks, *known))


def _kept(table: CsvText, grade: int, row: int) -> str:
    return _SPECIAL.get(table.cell(row, grade).upper(), "")


def _id_column(table: CsvText) -> int:
    """The column of Canvas's own user id.

    Raises:
        UsageError: The importer would not know the header.
    """
    first = table.header[:3]
    split = first[:2] == ("LastName", "FirstName")
    at = 2 if split else 1
    if len(first) <= at or first[at] != "ID" or not (split or "Student" in first[0]):
        raise UsageError(
            f"{table.name} is not a gradebook of Canvas: its first columns are not Student and ID. "
            "In Canvas: Grades, Export, Export Entire Gradebook."
        )
    if "Section" not in table.header:
        raise UsageError(
            f"{table.name} has no column 'Section', without which Canvas refuses it. Export it again."
        )
    return at


def _points_possible(table: CsvText, grade: int) -> str:
    """The assignment's maximum as written; empty when there is no such row.

    Raises:
        UsageError: Canvas says that the column is read only.
    """
    row = next((row for row in range(1, len(table.rows)) if _tells_maximum(table, row)), None)
    told = "" if row is None else table.cell(row, grade)
    if re.search(r"read\s+only", told):
        raise UsageError(
            f"{table.name}, column '{table.header[grade]}': Canvas does not read it. Choose another --column."
        )
    return told


def _tells_maximum(table: CsvText, row: int) -> bool:
    return "Points Possible" in table.cell(row, 0)


def _called(header: str) -> Sequence[str]:
    found = _TITLE.match(header)
    return [header, found["title"].strip(), found["id"]] if found else [header]


def _is_student(table: CsvText, header: Sequence[str], row: int) -> bool:
    # the row on hidden grades begins with empty cells, in any language
    if not any(table.cell(row, at) for at in range(header.index("section"))):
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
