"""A small class that is graded by hand, marked, compared, exported, published and pushed."""

import csv
import gzip
import html
import io
import json
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.submission import (
    AccountedFile,
    CellKind,
    Download,
    Fate,
    Origin,
    View,
    ViewCell,
    plain_lines,
)
from grader.files.stored_records import VIEW_FILE, view_bytes
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.reports.results_json.results_file import download_record
from grader.reports.whole_class.similarity_page import similarity_page, similarity_table
from grader.reports.whole_class.similarity_record import (
    FILE,
    PAGE,
    TABLE,
    record_text,
    similarity_record,
)
from grader.results.class_pages import write_pages
from grader.results.current_state import DownloadAccount
from grader.similarity.compared_pairs import compared
from grader.similarity.compared_work import Work
from grader.similarity.normalized_code import read_code

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HER, MATE, THIRD = "400101204", "400101205", "400101206"
NAME = "Żofia Brzęczyszczykiewicz"
LINES = {
    one: [
        f"secret_{one[-1]}_{number} = sum(value_{one[-1]} * {number}{number} for value_{one[-1]} in things)"
        for number in range(30)
    ]
    for one in (HER, MATE, THIRD)
}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def source(student_id: str) -> str:
    """A homework; that of MATE mentions HER in a comment."""
    thanks = [f"# thanks to {HER} for the idea"] if student_id == MATE else []
    return "\n".join([*thanks, "def mean(things):", *(f"    {line}" for line in LINES[student_id]), ""])


def view(student_id: str) -> bytes:
    cell = ViewCell("homework.py", CellKind.CODE, plain_lines(source(student_id)))
    return view_bytes(View("homework.py", (cell,)))


def picture(text: str) -> bytes:
    """A PNG with a text in it."""
    notes, buffer = PngInfo(), io.BytesIO()
    notes.add_itxt("Comment", text, zip=True)
    Image.new("L", (4, 4), len(text)).save(buffer, "PNG", pnginfo=notes)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def kept_class(
    tmp_path_factory: pytest.TempPathFactory, assignment: Assignment, class_evidence: Callable[..., Evidence]
) -> Path:
    """The folder of which each test gets its own copy: HER work, that of two others, and one that moved.

    HER and MATE handed in together, but each has a file of their own.
    """
    out = tmp_path_factory.mktemp("kept") / "results"
    origin = Origin(
        key="moodle-1234525",
        upload=f"{NAME}_1234525_assignsubmission_file_",
        lms="Moodle",
        number="1234525",
        person=NAME,
    )
    team = (HER, MATE)
    with Gradebook(out, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for evidence in (
            class_evidence(HER, origin=origin, team=team, reason=LINES[HER][3]),
            class_evidence(MATE, team=team),
            class_evidence(THIRD),
        ):
            files = {VIEW_FILE: view(evidence.student_id), "figure.png": picture(evidence.student_id)}
            keeper.kept(evidence, files, NOW)
        files = (
            AccountedFile(f"{origin.upload}/{HER}_Lab8_Homework.py", Fate.MATCHED, HER),
            AccountedFile(f"{MATE}_Lab8_Homework.py", Fate.MATCHED, MATE),
            AccountedFile(f"{THIRD}_Lab8_Homework.py", Fate.MATCHED, THIRD),
        )
        account = DownloadAccount(
            download_record(Download(files, source="download.zip")), frozenset({origin.key})
        )
        book.add_download_account(account.source, account.text(), who="ta1", when=NOW)
        write_pages(assignment, book, out, NOW)
    compare(out, assignment)
    write_again(out, assignment)
    return out


def write_again(out: Path, assignment: Assignment) -> None:
    with Gradebook(out, assignment_id=assignment.id) as book:
        write_pages(assignment, book, out, NOW, always_class=True)


def compare(out: Path, assignment: Assignment) -> None:
    """What `grader similar` writes: the code of all is the same but for its names."""
    works = [
        Work(student, False, read_code("homework.py", source(student).encode()), None, (), ())
        for student in (HER, MATE, THIRD)
    ]
    found = compared(works, given=frozenset(), threshold=0.05)
    (out / PAGE).write_text(similarity_page(assignment, found, notes=[], generated_at=NOW), "utf-8")
    (out / TABLE).write_text(similarity_table(found), "utf-8")
    (out / FILE).write_text(record_text(similarity_record(assignment.id, found, NOW)), "utf-8")


@pytest.fixture
def results(kept_class: Path, tmp_path: Path) -> Path:
    """A copy of the class, not marked yet."""
    return Path(shutil.copytree(kept_class, tmp_path / "results"))


@pytest.fixture
def surrounded(results: Path, tmp_path: Path) -> Path:
    """The class, marked, exported, published twice and compared; all outside files lie in `tmp_path`."""
    sheet = tmp_path / "marks.csv"
    said("marks", "export", results, sheet, "--names")
    rows = list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"))))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, rows[0])
    writer.writeheader()
    for row in rows:
        writer.writerow(row if row["points"] else {**row, "points": "1", "comment": "Seen."})
    sheet.write_text(buffer.getvalue(), "utf-8")
    said("marks", "import", results, sheet)
    said("marks", "set", results, MATE, "q6", "2", "--why", f"Better than {NAME}, {HER}.")
    said("marks", "export", results, tmp_path / "marks.xlsx", "--names")
    said("publish", results, "--to", tmp_path / "published")
    said("publish", results, "--to", tmp_path / "published.zip")
    said("marks", "set", results, HER, "q6", "3", "--why", "Read again.")
    said("publish", results, "--to", tmp_path / "published", "--update")
    assert list((tmp_path / "published/instructors/earlier" / HER).iterdir()), "the report as it was"
    grades = tmp_path / "lms" / "Grades.csv"  # made by the LMS
    grades.parent.mkdir()
    head = "\ufeffIdentifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\r\n"
    lines = "".join(
        f"Participant {one[-1]},{name},{one},,100.00,-\r\n"
        for one, name in ((HER, NAME), (MATE, "Ann Other"), (THIRD, "Bob Third"))
    )
    grades.write_bytes((head + lines).encode())
    said("export", "moodle-worksheet", results, "--into", grades)
    said("export", "feedback-zip", results, "--into", grades)
    said("export", "gradescope", results, "--to", tmp_path / "gradescope")
    (tmp_path / "lms").rename(tmp_path.parent / f"{tmp_path.name} lms")
    return results


# --- searching all bytes ---------------------------------------------------------------------------------


def texts_in(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """(place, text) of all that a file holds: archives, compressed records, pictures and tables opened."""
    yield name, content.decode("utf-8", "replace")
    yield name, content.decode("utf-16-le", "replace")
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                yield from texts_in(f"{name}/{entry.filename}", archive.read(entry))
                yield name, entry.filename
    elif content.startswith(b"\x1f\x8b"):
        yield from texts_in(name, gzip.decompress(content))
    elif content.startswith(b"\x89PNG"):
        with Image.open(io.BytesIO(content)) as image:
            yield from ((name, str(text)) for text in image.info.values())
    elif content.startswith(b"SQLite format"):
        yield from _values(name, content)


def _values(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    raw = sqlite3.connect(":memory:")
    raw.deserialize(content[:18] + b"\x01\x01" + content[20:])  # its log has been written into it
    for (table,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for row in raw.execute(f'SELECT * FROM "{table}"'):
            for value in row:
                if isinstance(value, bytes):
                    yield from texts_in(f"{name}/{table}", value)
                elif isinstance(value, str):
                    yield f"{name}/{table}", value
    raw.close()


def found_in(folder: Path, needles: list[str]) -> dict[str, set[str]]:
    """Needle -> the files below a folder whose name or bytes hold it, however they are escaped."""
    found: dict[str, set[str]] = {needle: set() for needle in needles}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes() if path.is_file() else b""
        for place, text in (("", name), *texts_in(name, content)):
            plain = html.unescape(re.sub(r"<[^>]*>", "", text))
            for needle in needles:
                if needle in text or needle in plain or json.dumps(needle)[1:-1] in text:
                    found[needle].add(place or name)
    return found


HERS = [HER, NAME, NAME.split()[1], "1234525", *LINES[HER]]
