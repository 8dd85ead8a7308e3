"""A class of sixty-one uploads in three downloads, with what a head TA met on a weekend. Ids only, no names.

What must come of every upload is written beside it.
"""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

TOML = """
id = "doubling"
title = "Doubling"
deadline = 2026-01-31T23:59:00+00:00
[late]
grace_minutes = 5
points_per_day = 5
[files]
stem = "{student_id}_homework"
[files.required]
code = [".py", ".ipynb"]
report = [".pdf"]
[data]
real = "none"
synthetic = "none"
classes = ["a", "b"]
[[component]]
name = "Doubler"
kind = "class"
signature = "dim"
[[rubric]]
id = "model"
title = "Model"
points = 60
[rubric.components]
Doubler = 60
""" + "".join(
    f"""
[[rubric]]
id = "q{number}"
title = "Question {number}"
points = 8
by = "person"
"""
    for number in range(6, 11)
)

CODE = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return 2 * x
"""
TRIPLES = CODE.replace("2 * x", "3 * x")
BROKEN = CODE.replace("def forward(self, x):", "def forward(self, x)")
NO_CELLS = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
RAR, DOCX = b"Rar!\x1a\x07\x01\x00", b"PK\x03\x04 a document"
QUESTIONS = tuple(f"q{number}" for number in range(6, 11))
DAY = "2026-01-{day:02} 12:00:00 Z"


def pdf(pages: int = 2) -> bytes:
    """A PDF whose pages each say which they are."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>"
        % (b" ".join(b"%d 0 R" % (4 + 2 * page) for page in range(pages)), pages),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for page in range(pages):
        text = b"BT /F1 24 Tf 72 700 Td (Question %d) Tj ET" % (6 + page)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * page)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text))
    made, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return made + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, table, len(objects) + 1, len(made))
    )


@dataclass(frozen=True)
class Upload:
    """One upload and what must come of it.

    Attributes:
        student_id: Whose it is.
        number: The LMS's own number of whoever sent it, or of the submission.
        files: Name -> content.
        status: What its result is; empty: there is none.
        oddity: What is odd about it; empty for ordinary work.
        mates: Who handed it in as well.
        moment: When the LMS received it, where it says so.
        late: The LMS marks it late.
    """

    student_id: str
    number: int
    files: tuple[tuple[str, bytes], ...]
    status: str = "graded"
    oddity: str = ""
    mates: tuple[str, ...] = ()
    moment: str = DAY.format(day=30)
    late: bool = False


@dataclass(frozen=True)
class Weekend:
    """The three downloads.

    Attributes:
        uploads: LMS -> its uploads.
        absent: Who is on Moodle's list and handed in nothing.
    """

    uploads: dict[str, tuple[Upload, ...]] = field(default_factory=dict)
    absent: str = "400101327"

    def all(self) -> list[Upload]:
        """Every upload."""
        return [one for own in self.uploads.values() for one in own]

    def having(self, oddity: str) -> Upload:
        """The one upload that is odd so."""
        (found,) = (one for one in self.all() if one.oddity == oddity)
        return found

    def results(self) -> dict[str, str]:
        """Student -> the status of the result that there must be."""
        return {
            student: one.status
            for one in self.all()
            for student in (one.student_id, *one.mates)
            if one.status
        }


def _work(
    student: int, code: str = CODE, suffix: str = ".py", report: str = ".pdf"
) -> tuple[tuple[str, bytes], ...]:
    stem = f"{student}_homework"
    papers = {".pdf": pdf(), ".docx": DOCX, ".rar": RAR}
    made = [(f"{stem}{suffix}", code.encode())] if suffix else []
    return tuple(made + ([(f"{stem}{report}", papers[report])] if report else []))


def weekend() -> Weekend:
    """The class."""
    first = 400101000
    moodle = {
        301: ("refused: an empty notebook", _work(first + 301, "", ".ipynb"), "refused"),
        302: ("refused: no cells", _work(first + 302, NO_CELLS, ".ipynb"), "refused"),
        309: ("refused: a syntax error", _work(first + 309, BROKEN), "refused"),
        312: ("a report alone", _work(first + 312, suffix=""), "incomplete"),
        313: ("a packed report", _work(first + 313, report=".rar"), "incomplete"),
        314: ("a document", _work(first + 314, report=".docx"), "incomplete"),
        320: ("three times", _work(first + 320, TRIPLES), "graded"),
        # 324 named his files as 325 did
        324: ("another's id", _work(first + 325, TRIPLES), "graded"),
    }
    made = {
        "Moodle": tuple(
            Upload(str(first + n), 1234000 + n, moodle[n][1], moodle[n][2], moodle[n][0])
            if n in moodle
            else Upload(str(first + n), 1234000 + n, _work(first + n))
            for n in range(301, 327)
        ),
        "Canvas": tuple(
            Upload(
                str(first + n),
                7000 + n,
                _work(first + n),
                oddity="marked late" if n == 333 else "",
                late=n == 333,
            )
            for n in range(331, 351)
        ),
        "Gradescope": (
            Upload(
                str(first + 354),
                330000054,
                _work(first + 354),
                oddity="two days late",
                moment="2026-02-02 12:00:00 Z",
            ),
            Upload(str(first + 355), 330000055, _work(first + 355)),
            Upload(
                str(first + 356), 330000056, _work(first + 356), oddity="a team", mates=(str(first + 357),)
            ),
            *(Upload(str(first + n), 330000000 + n - 300, _work(first + n)) for n in range(358, 362)),
            Upload(str(first + 362), 330000062, (), status="", oddity="listed, and not in the export"),
            *(Upload(str(first + n), 330000000 + n - 300, _work(first + n)) for n in range(363, 370)),
        ),
    }
    return Weekend(made)


def write(made: Weekend, folder: Path) -> dict[str, Path]:
    """The downloads and the lists of the class on the disk: LMS -> the download.

    Moodle's has its grading worksheet beside it, `Grades-DL-Lab8.csv`.
    """
    paths = {lms: folder / f"DL-Lab8-{lms.lower()}.zip" for lms in made.uploads}
    for lms, path in paths.items():
        path.write_bytes(_zip(_entries(lms, made.uploads[lms])))
    (folder / "Grades-DL-Lab8.csv").write_text(_worksheet(made), "utf-8")
    (folder / "canvas.csv").write_text(_canvas_gradebook(made), "utf-8")
    return paths


def _entries(lms: str, uploads: Sequence[Upload]) -> list[tuple[str, bytes]]:
    if lms == "Moodle":
        return [
            (f"Student {one.student_id[-3:]}_{one.number}_assignsubmission_file/{name}", content)
            for one in uploads
            for name, content in one.files
        ]
    if lms == "Canvas":
        return [
            (f"student{one.student_id[-3:]}{'_LATE' * one.late}_{one.number}_{90_000 + at}_{name}", content)
            for at, one in enumerate(uploads)
            for name, content in one.files
        ]
    root = "assignment_77_export"
    listed = "".join(
        f"submission_{one.number}:\n  :submitters:\n"
        + "".join(f"  - :sid: '{student}'\n" for student in (one.student_id, *one.mates))
        + f"  :created_at: {one.moment}\n"
        for one in uploads
    )
    return [
        (f"{root}/submission_metadata.yml", listed.encode()),
        *((f"{root}/submission_{one.number}/{name}", data) for one in uploads for name, data in one.files),
    ]


def _zip(entries: Sequence[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 30, 12, 0, 0)), content)
    return stream.getvalue()


def _worksheet(made: Weekend) -> str:
    rows = [(one.number, one.student_id) for one in made.uploads["Moodle"]] + [(1234327, made.absent)]
    return "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n" + "".join(
        f"Participant {number},Student {student[-3:]},{student},,100,-\n" for number, student in rows
    )


def _canvas_gradebook(made: Weekend) -> str:
    rows = [(one.number, one.student_id) for one in made.uploads["Canvas"]]
    return "Student,ID,SIS User ID,SIS Login ID,Section,Lab 8 (11)\nPoints Possible,,,,,100\n" + "".join(
        f"Student {student[-3:]},{number},{student},{student},1,\n" for number, student in rows
    )
