"""Reads Blackboard Learn's download of submissions, and fills in its grade center.

Assignment File Download makes `ASSIGNMENT_USERNAME_attempt_2026-01-31-23-40-05_FILE`, for the last
attempt or for all of them, and for each attempt `ASSIGNMENT_USERNAME_attempt_2026-01-31-23-40-05.txt`
with its particulars: `Name: Jane Doe (jdoe)`, `Assignment:`, `Date Submitted:`, `Current Grade:`, then
what the student wrote, and last, below `Files:`, an `Original filename:` and a `Filename:` for each.
Names of assignments and users may hold underscores, and only the particulars say which part is the user's.
The time in a name is by a clock whose time zone only the particulars state, often by letters that several
zones share.

Work Offline, Download, makes a table that begins with a byte order mark: UTF-16 if cells are separated by
tabs (and the file is called .xls), UTF-8 if they are separated by commas. A column of grades is called
`Lab 8 [Total Pts: 100 Score] |123456`; a calculated one, which is not read back, is called `Total [Total
Pts: up to 300 Score] |123457`. Blackboard identifies a column by the number. It documents these names by
example only; several published readers of them agree.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path, PurePosixPath

from grader.domain.errors import UsageError
from grader.files.csv_text import CsvText, csv_text
from grader.files.file_names import displayable, plain
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
    is_no_grade,
    the_column,
)
from grader.lms.matching import NumberColumn
from grader.lms.system import ClassListForm, DownloadName, Lms, Together

LMS = "Blackboard"
MOST_BYTES = 4_000_000  # of particulars that are read: they include what students wrote
_NAME = re.compile(
    r"(?P<label>.+?)_attempt_(?P<clock>\d{4}(?:-\d\d){5})(?:_(?P<name>.+)|(?P<particulars>\.txt))", re.DOTALL
)
_WHO = re.compile(r"[^:]+:(?P<person>.*)\((?P<user>[^()]+)\)\s*")
_TIME = re.compile(r"(?<!\d)(?P<hour>\d{1,2}):(?P<rest>\d\d:\d\d)(?:\s*(?P<half>[AP])\.?M\b)?", re.IGNORECASE)
_ZONE = re.compile(r"\b(?:UTC|GMT)(?:(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?)?\s*$")
_FILES = re.compile(r"^Files:[ \t]*$", re.MULTILINE)
_FILE = re.compile(r"^[ \t]*Original filename:[ \t]*(.+)\n[ \t]*Filename:[ \t]*(.+)$", re.MULTILINE)
_LONGEST = 200  # bytes of a file's name
_WAS_READ = "was read: it says who handed in an attempt, and when."


@dataclass(frozen=True)
class _Attempt:
    """The attempt in the prefix of a student's own file name.

    Attributes:
        label: The assignment and the user, with an underscore between them.
        clock: When it was handed in.
    """

    label: str
    clock: datetime


@dataclass(frozen=True)
class _User:
    """The user who handed an attempt in.

    Attributes:
        login: The username; empty if nothing says which part of the label it is.
        person: The name; empty if unknown.
    """

    login: str = ""
    person: str = ""


@dataclass(frozen=True)
class _Particulars:
    """The particulars that the text beside an attempt states.

    Attributes:
        user: Who handed it in, if the name of the text file agrees.
        zone: Of the clock in the name; None if unknown.
        files: Name in the download -> the student's own name.
    """

    user: _User
    zone: tzinfo | None
    files: Mapping[str, str]


def blackboard_name(name: str) -> DownloadName | None:
    """What a name in a Blackboard download says by itself, or None if Blackboard did not make it.

    With more than one underscore before the attempt, it does not say which part of it is the user's.
    """
    reading = _read(name)
    if reading is None:
        return None
    attempt, own_name = reading
    return _download_name(attempt, own_name or name, _User(_only_part(attempt.label)))


def read_together(files: Mapping[str, Path]) -> Together:
    """What the names in one folder say in combination, if it is a download from Blackboard."""
    readings = {name: reading for name in files if (reading := _read(name)) is not None}
    texts = {attempt: name for name, (attempt, own_name) in readings.items() if not own_name}
    labels = {attempt.label for attempt in texts}
    # in another LMS's download, a student's own file may have such a name
    if 2 * sum(attempt.label in labels for attempt, _ in readings.values()) < len(files):
        return Together()
    particulars = {attempt: _particulars(attempt, files[name]) for attempt, name in texts.items()}
    users = _users({attempt.label for attempt, _ in readings.values()}, particulars)
    zones = {attempt: details.zone for attempt, details in particulars.items()}
    own_names = {name: reading for name, reading in readings.items() if reading[1]}
    own_names |= _listed_names(files, readings, particulars)
    return Together(
        {
            name: _download_name(attempt, own_name, users[attempt.label], zones.get(attempt))
            for name, (attempt, own_name) in own_names.items()
        },
        lms_files={name: f"{name}: {_WAS_READ}" for name in texts.values()},
        attempts=tuple(
            _download_name(attempt_alone, "", users[attempt_alone.label], zone)
            for attempt_alone, zone in zones.items()
        ),
    )


def _read(name: str) -> tuple[_Attempt, str] | None:
    """(Attempt, the student's own name) of a name in a download; the latter is empty for particulars."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        clock = datetime.strptime(match["clock"], "%Y-%m-%d-%H-%M-%S")
    except ValueError:
        return None
    return _Attempt(match["label"], clock), match["name"] or ""


def _download_name(attempt: _Attempt, own_name: str, user: _User, zone: tzinfo | None = None) -> DownloadName:
    return DownloadName(
        name=own_name,
        sender_label=user.login or attempt.label,
        lms=LMS,
        sender_key=_login(user.login or attempt.label),
        number=_login(user.login),
        sender_name=user.person,
        attempt=f"{attempt.clock}",
        received_at=attempt.clock.replace(tzinfo=zone) if zone else None,
        received_clock=attempt.clock,
    )


def _only_part(label: str) -> str:
    """What follows the only underscore of a label; empty if there are several."""
    user = label.partition("_")[2]
    return "" if "_" in user else user


def _login(text: str) -> str:
    """A username, normalized for comparison: Blackboard ignores case."""
    return plain(text).casefold()


def _particulars(attempt: _Attempt, path: Path) -> _Particulars:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    text = content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    head = text.strip().partition("\n\n")[0].splitlines()
    user = _WHO.fullmatch(head[0]) if head else None
    login = user["user"].strip() if user else ""
    fits = login and attempt.label.casefold().endswith(f"_{login.casefold()}")
    return _Particulars(
        _User(login, displayable(user["person"]).strip()) if user and fits else _User(),
        next((zone for line in head[1:] if (zone := _zone(line, attempt.clock))), None),
        _listed_files(text) if len(content) <= MOST_BYTES else {},
    )


def _zone(line: str, clock: datetime) -> tzinfo | None:
    """The zone of a clock, if a line states the same time with an unambiguous zone."""
    time, zone = _TIME.search(line), _ZONE.search(line)
    if time is None or zone is None:
        return None
    half = (time["half"] or "").upper()
    hour = (int(time["hour"]) % 12 + 12 * (half == "P")) if half else int(time["hour"])
    if (hour, time["rest"]) != (clock.hour, f"{clock:%M:%S}"):
        return None
    offset = timedelta(hours=int(zone["hours"] or 0), minutes=int(zone["minutes"] or 0))
    if offset >= timedelta(days=1):
        return None
    return timezone(-offset if zone["sign"] == "-" else offset) if offset else UTC


def _listed_files(text: str) -> dict[str, str]:
    """Name in the download -> the student's own, from the list at the end: students may write above it."""
    sections = _FILES.split(text)
    listed = sections[-1] if len(sections) > 1 else ""
    pairs = {name.strip(): original.strip() for original, name in _FILE.findall(listed)}
    return {name: original for name, original in pairs.items() if _is_usable(original, name)}


def _is_usable(original: str, name: str) -> bool:
    """Whether a student's own name may replace the name that Blackboard made of it."""
    alike = PurePosixPath(original).suffix.casefold() == PurePosixPath(name).suffix.casefold()
    usable = original not in (".", "..") and not re.search(r"[/\\\x00-\x1f]", original)
    return alike and usable and len(original.encode("utf-8", "replace")) <= _LONGEST


def _listed_names(
    files: Mapping[str, Path],
    readings: Mapping[str, tuple[_Attempt, str]],
    particulars: Mapping[_Attempt, _Particulars],
) -> dict[str, tuple[_Attempt, str]]:
    """File -> its attempt and the student's own name for it, from the particulars of one attempt."""
    listed = [
        (name, (attempt, original))
        for attempt, details in particulars.items()
        for name, original in details.files.items()
        if name in files and (name not in readings or (readings[name][0] == attempt and readings[name][1]))
    ]
    claims = Counter(name for name, _ in listed)
    return {name: reading for name, reading in listed if claims[name] == 1}


def _users(labels: Iterable[str], particulars: Mapping[_Attempt, _Particulars]) -> dict[str, _User]:
    """Label -> the user in it.

    All labels of a download begin with the same assignment, so the particulars of one apply to all.
    """
    users_by_label: dict[str, set[_User]] = {attempt.label: set() for attempt in particulars}
    for attempt, details in particulars.items():
        users_by_label[attempt.label] |= {details.user} if details.user.login else set()
    prefixes = {
        label[: -len(user.login)].casefold() for label, users in users_by_label.items() for user in users
    }
    user_by_label = {}
    for label in labels:
        rests = {label[len(prefix) :] for prefix in prefixes if label.casefold().startswith(prefix)} - {""}
        if label not in users_by_label and not prefixes:
            rests = {_only_part(label)}
        users = users_by_label.get(label) or {_User(rest) for rest in rests}
        user_by_label[label] = next(iter(users)) if len(users) == 1 else _User()
    return user_by_label


# --- the grade center --------------------------------------------------------------------------------------

USERNAME = "username"
_COLUMN = re.compile(r"(?P<title>.*)\[(?P<worth>[^\[\]]*)\] *\|(?P<id>\d+(?:_\d+)?)", re.DOTALL)
_WORTH = re.compile(r"[^:]*: *(?P<calculated>up to )?(?P<most>\d+(?:[.,]\d+)?) *(?P<kind>.*)", re.IGNORECASE)
_NO_POINTS = ("percentage", "letter", "text", "complete/incomplete")
_ABOUT_NOBODY = ("last access", "availability")
_UNGRADED = re.compile(r"needs grading *(?:\([^()]*\))?", re.IGNORECASE)
_PREVIEW = "_previewuser"  # a teacher who views the course as a student


def blackboard(export_data: ExportData) -> Export:
    """The downloaded grade center with the grades in one column.

    Raises:
        UsageError: The file is not such a table, or does not fit the grades.
    """
    name, content = export_data.lms_file
    table = csv_text(name, content)
    header = [column.casefold() for column in table.header]
    columns = [index for index, column in enumerate(table.header) if _COLUMN.fullmatch(column)]
    if USERNAME not in header or not columns:
        raise UsageError(
            f"{name} is not a grade center of Blackboard: it has no column "
            f"{'of grades' if USERNAME in header else 'Username'}. In Blackboard, in English: Grade Center, "
            "Work Offline, Download."
        )
    fillable = [index for index in columns if not _is_calculated(table.header[index])]
    grade = the_column(
        table, export_data.choices.column or export_data.assignment.title, fillable, _column_names
    )
    most = _maximum(table, grade)
    user_column = header.index(USERNAME)
    form = Form(
        table=table,
        students=[row for row in range(1, len(table.rows)) if _is_student(table, header, row)],
        who=[
            user_column,
            *(
                index
                for index in range(min(columns))
                if index != user_column and header[index] not in _ABOUT_NOBODY
            ),
        ],
        number=NumberColumn(user_column, LMS, _login, is_id=True),
        grade=grade,
        maximum=lambda _: most,
        is_ungraded=lambda old: is_no_grade(old) or _UNGRADED.fullmatch(old) is not None,
    )
    export = filled(form, export_data)
    remarks = () if most else (f"{name} does not state the points possible, so no maximum was compared.",)
    return replace(export, remarks=(*export.remarks, *remarks))


def _worth(header: str) -> re.Match[str] | None:
    column = _COLUMN.fullmatch(header)
    return _WORTH.fullmatch(column["worth"]) if column else None


def _is_calculated(header: str) -> bool:
    worth = _worth(header)
    return worth is not None and worth["calculated"] is not None


def _maximum(table: CsvText, grade: int) -> str:
    """The points possible as written; empty if the column does not state them.

    Raises:
        UsageError: The column does not hold points.
    """
    worth = _worth(table.header[grade])
    if worth is not None and worth["kind"].strip().casefold() in _NO_POINTS:
        raise UsageError(
            f"{table.name}, column '{table.header[grade]}': holds no points. "
            "In Blackboard, make Score the column's primary display and download the file again."
        )
    return worth["most"] if worth else ""


def _column_names(header: str) -> Sequence[str]:
    match = _COLUMN.fullmatch(header)
    return [header, match["title"].strip(), match["id"]] if match else [header]


def _is_student(table: CsvText, header: Sequence[str], row: int) -> bool:
    username = table.cell(row, header.index(USERNAME)).casefold()
    return not table.is_blank(row) and not username.endswith(_PREVIEW)


def _is_own(header: Sequence[str]) -> bool:
    return USERNAME in header and (
        set(_ABOUT_NOBODY) <= set(header) or any(_COLUMN.fullmatch(column) for column in header)
    )


BLACKBOARD = Lms(
    name=LMS,
    read_name=blackboard_name,
    class_list=ClassListForm(
        is_own=_is_own,
        logins=(USERNAME,),
        number=USERNAME,
        read_number=_login,
        number_is_id=True,
        is_student=_is_student,
    ),
    formats=(
        ExportFormat(
            name="blackboard",
            help="""Fill a column of Blackboard's grade center.

    It gets the grades of the results folder OUT. In Blackboard: Grade Center, Work Offline, Download, with
    tabs or commas. The column is the one with the assignment's title; --column names another by its title or
    its number. Everything else stays unchanged. Upload the copy with Work Offline, Upload.

    \b
    Example:
      grader export blackboard results --into gc_lab_fullgc.xls --column "Lab 8"
    """,
            write=blackboard,
            template=InputFile("The grade center as Blackboard downloaded it."),
            options=(COLUMN, SCALE, ANYWAY),
        ),
    ),
    read_together=read_together,
)
