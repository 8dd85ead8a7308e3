"""Submissions: the uploads of a download, the files that count, and their views for people.

It holds whose an upload is, when it came, which files were accepted in which role and why others were not.
It also holds the PDF of answers, drawn page by page, and the view of a handed-in file by lines and cells. A
view is made from untrusted bytes in a parser: nothing in it is safe to show unescaped. Nothing here opens a
file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from grader.domain.edit import InTime, Received


class Role(StrEnum):
    """The purpose of a submitted file, as far as the engine uses it.

    An assignment may name further roles, which are plain texts: `metrics`. Its checks read these files.
    """

    CODE = "code"
    CHECKPOINT = "checkpoint"
    REPORT = "report"


@dataclass(frozen=True)
class RefusedFile:
    """A file that was set aside.

    Attributes:
        reason: The sentence that says why.
        clutter: A computer made it for itself, so nothing is lost.
    """

    name: str
    reason: str
    clutter: bool = False


class Fate(StrEnum):
    """What became of a file of a download."""

    MATCHED = "matched"  # it belongs to a submission; the intake decides whether it is accepted
    SUPERSEDED = "superseded"  # a later attempt counts
    REFUSED = "refused"  # it belongs to nobody, or cannot be used; the reason says why


@dataclass(frozen=True)
class AccountedFile:
    """A file of a download, and what became of it.

    Attributes:
        name: Its path in the download; the path inside an archive follows the archive's name.
        student_id: Whose it is; None if nobody knows.
        reason: A sentence; empty for a file with the asked name.
        count: How many files of one kind the line stands for.
        clutter: A computer made it for itself, so nothing is lost.
    """

    name: str
    fate: Fate
    student_id: str | None = None
    reason: str = ""
    count: int = 1
    clutter: bool = False


@dataclass(frozen=True)
class Lacking:
    """A submission that the LMS lists but that is missing from its download.

    Attributes:
        student_id: Whose it is; the LMS's name for the submission if the LMS knows no student's id.
        upload: The LMS's name for the submission.
        key: What `Origin.key` would be.
    """

    student_id: str
    lms: str
    upload: str
    key: str


@dataclass(frozen=True)
class Download:
    """The content of a class's upload.

    Attributes:
        files: Every file, and what became of it.
        notes: Sentences for the people who run the course.
        source: The upload's name.
        lacking: What should have been in it.
    """

    files: tuple[AccountedFile, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""
    lacking: tuple[Lacking, ...] = ()


@dataclass(frozen=True)
class Delivery:
    """What is known about the time of delivery, besides the moment that an LMS records.

    Attributes:
        hinted_at: The latest time of modification of the files: only a hint, since packing, downloading or
            copying files may change it.
        hint: The source of the hint, as the end of a sentence; empty without one.
        marked_late: Whether the LMS marks it late, without saying by how much.
        extension: This student's own deadline.
    """

    hinted_at: datetime | None = None
    hint: str = ""
    marked_late: bool = False
    extension: datetime | None = None


@dataclass(frozen=True)
class Arrival:
    """When a submission came and was due, according to the LMS and to people's decisions.

    Attributes:
        in_time: Whether a person decided that it came in time.
        marked: Whether the LMS marks it late, and nobody decided anything.
        extension: The student's own deadline.
        decided: A person's decision on when it came; None if there is none.
    """

    received_at: datetime | None
    in_time: bool
    marked: bool
    extension: datetime | None
    decided: Received | InTime | None = None

    def due(self, deadline: datetime | None) -> datetime | None:
        """The student's deadline: their own, unless everybody's is later; None if there is neither."""
        if self.extension is None or deadline is None:
            return self.extension or deadline
        return max(self.extension, deadline)


@dataclass(frozen=True)
class Origin:
    """The upload of a submission, and what shows whose it is. For staff: it may hold a person's name.

    Attributes:
        key: The same for the same upload in another download; empty in records of older versions.
        upload: Its name in the download.
        listed_as: The id under which it is listed while nobody knows whose it is. No student can have such an
            id, and it contains no name.
        lms: `Moodle`, `Canvas`, ... as in `grader.lms`, or empty.
        number: The LMS's own number, or login, of whoever handed it in; empty if the download has none.
        person: The LMS's name for whoever handed it in; empty if it gives none.
        carries: The student's id in the names of the files, or of their folder; otherwise empty.
        known_id: The student's id according to the LMS (its metadata, its class list); it outranks `carries`.
    """

    key: str = ""
    upload: str = ""
    listed_as: str = ""
    lms: str = ""
    number: str = ""
    person: str = ""
    carries: str = ""
    known_id: str = ""

    def asked_id(self, student_id: str) -> str:
        """The id that the files should have in their names.

        Args:
            student_id: The id that the submission is listed under.
        """
        return student_id if student_id != self.listed_as else self.carries or "<StudentID>"


@dataclass(frozen=True)
class RecordedUpload:
    """An upload that the gradebook has a result of.

    Attributes:
        row: The key under which the gradebook keeps it.
        student_id: The id under which it is listed now.
        digest: Of its files.
        decided: Whether a person decided whose it is.
        held: Whether nobody knows whose it is.
        counts: Whether it is the one that counts for that id: a person may have assigned several to one
            student.
    """

    row: str
    student_id: str
    origin: Origin
    digest: str
    decided: bool = False
    held: bool = False
    counts: bool = True


@dataclass(frozen=True)
class Submission:
    """One student's upload for one assignment.

    Attributes:
        student_id: Sanitized (letters, digits, `-`, `_`) and unique within a class: it becomes a file name.
        assignment_id: The assignment's id, e.g. `vit_defects`.
        files: The files, under the names that the student gave.
        digest: SHA-256 over names and contents, hexadecimal. Seeds derive from it.
        received_at: When it was handed in, if the LMS records it: never a guess.
        delivery: What else is known about that: hints, marks, the student's own deadline.
        partial: Whether a single file was given, so that the missing-file rule does not apply.
        set_aside: Files that could not be unpacked from the student's own archives, such archives, and
            earlier attempts.
        notes: Sentences for the report (a name that was written with other digits, ...).
        team: The ids of all who handed it in together, sorted; () for a student's own.
        origin: The upload that it comes from.
        held: Why nobody knows whose it is, in a sentence; `student_id` is then `listed_as`. Otherwise empty.
    """

    student_id: str
    assignment_id: str
    files: tuple[Path, ...]
    digest: str
    received_at: datetime | None = None
    delivery: Delivery = field(default_factory=Delivery)
    partial: bool = False
    set_aside: tuple[RefusedFile, ...] = ()
    notes: tuple[str, ...] = ()
    team: tuple[str, ...] = ()
    origin: Origin = field(default_factory=Origin)
    held: str = ""


@dataclass(frozen=True)
class AcceptedFile:
    """A file that counts.

    Attributes:
        role: Its role, as the assignment names it.
        name: The student's name for it.
        size: In bytes.
        digest: SHA-256, hexadecimal.
    """

    role: str
    name: str
    size: int
    digest: str


@dataclass(frozen=True)
class Intake:
    """The files of a submission by role, and what was refused.

    Attributes:
        code: The `.py` or `.ipynb` that is graded, if there is one.
        modules: The files that it may import: name, with the folders before it -> path.
        checkpoint: The `.pth`, if it passed the checks that need no loading; that of the first model, if
            several are trained.
        further_checkpoints: Those of the other models, by the measure's id.
        report: The `.pdf`, if it is one.
        others: The files in further roles that the assignment names, by the role.
        refused: Files set aside, with reasons.
        missing: Roles that the assignment requires and that no file fills.
        notes: Sentences for the report (a name that was nearly right, ...).
    """

    submission: Submission
    code: Path | None = None
    modules: Mapping[str, Path] = field(default_factory=dict)
    checkpoint: Path | None = None
    further_checkpoints: Mapping[str, Path] = field(default_factory=dict)
    report: Path | None = None
    others: Mapping[str, Path] = field(default_factory=dict)
    refused: tuple[RefusedFile, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def accepted(self) -> tuple[tuple[str, Path], ...]:
        """(role, file) of all files that count."""
        single = ((Role.CHECKPOINT, self.checkpoint), (Role.REPORT, self.report), *self.others.items())
        return (
            *((str(Role.CODE), path) for path in (self.code, *self.modules.values()) if path is not None),
            *((str(role), path) for role, path in single if path is not None),
            *((str(Role.CHECKPOINT), path) for path in self.further_checkpoints.values()),
        )


# --- answers ---------------------------------------------------------------------------------------------


ANSWERS_FILE = "answers.pdf"  # among the files that belong to the evidence, and beside the student's report
ANSWERS_TEXT_FILE = "answers.text"  # among the files that belong to the evidence: the text of its pages


class Undrawn(StrEnum):
    """Why no page was drawn, or not all of them."""

    PROTECTED = "protected"  # it opens with a password only
    DAMAGED = "damaged"  # it is not a PDF that can be opened, or has no pages
    ENDED = "ended"  # opening it failed: a crash, or more time or memory than allowed
    FULL = "full"  # its pages take more space than allowed


@dataclass(frozen=True)
class DrawnPage:
    """A page as a picture.

    Attributes:
        number: 1-based.
        width, height: In pixels.
    """

    number: int
    width: int
    height: int

    @property
    def image(self) -> str:
        """The name of one of the images that belong to the evidence (WebP)."""
        return f"answers-{self.number:02}.webp"


@dataclass(frozen=True)
class Answers:
    """The PDF that was accepted as the student's report.

    Attributes:
        file: Its name as it was handed in.
        digest: SHA-256 of its bytes, in hexadecimal digits.
        size: In bytes.
        kept: Whether its bytes are among the files that belong to the evidence, as `ANSWERS_FILE`.
        pages: The number of pages; None if unknown.
        tried: How many pages, from the first on, were tried before the drawing ended; their number is
            limited.
        drawn: Those of them that were drawn, in order.
        undrawn: Why the drawing ended before that limit, or before the first page.
    """

    file: str
    digest: str
    size: int
    kept: bool = False
    pages: int | None = None
    tried: int = 0
    drawn: tuple[DrawnPage, ...] = ()
    undrawn: Undrawn | None = None

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the pages that were tried but could not be drawn."""
        drawn = {page.number for page in self.drawn}
        return tuple(number for number in range(1, self.tried + 1) if number not in drawn)


# --- submission view -------------------------------------------------------------------------------------


CodeLine = tuple[tuple[str, str], ...]
"""A line as pieces of (kind, text); the texts joined are the line."""


def plain_lines(text: str) -> tuple[CodeLine, ...]:
    """The lines of a text, without the kinds of their pieces."""
    return tuple((("", line),) if line else () for line in text.split("\n"))


def text_of(lines: tuple[CodeLine, ...]) -> str:
    """The text that lines show."""
    return "\n".join("".join(text for _, text in line) for line in lines)


class CellKind(StrEnum):
    """The kind of a cell."""

    CODE = "code"
    TEXT = "text"  # Markdown: it is shown by its `html`
    RAW = "raw"  # neither: it is shown unchanged


@dataclass(frozen=True)
class ViewCell:
    """A cell, or a whole script.

    Attributes:
        file: `homework.py` or `In [4], cell 9`, as in `Place`.
        lines: Of code and of what is neither code nor text.
        html: The text, or the output and figures of the code; untrusted until it is sanitized.
    """

    file: str
    kind: CellKind
    lines: tuple[CodeLine, ...] = ()
    html: str = ""


@dataclass(frozen=True)
class View:
    """A handed-in file.

    Attributes:
        file: Its name.
        cells: In order; one for a script.
        cuts: Sentences about what is not shown.
    """

    file: str
    cells: tuple[ViewCell, ...] = ()
    cuts: tuple[str, ...] = ()
