"""What was handed in: the uploads of a download, the files that count, and how people see them.

It holds whose an upload is, when it came, which files were accepted in which role and why others were
not; the PDF of answers, drawn page by page; and the view of a handed-in file by lines and cells. A view
is made of untrusted bytes in a parser: whoever shows it takes nothing in it for safe. Nothing here opens
a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from grader.domain.edit import InTime, Received


class Role(StrEnum):
    """What a submitted file is for, as far as the engine does something with it.

    An assignment may name further roles, which are plain texts: `metrics`. What is in them, its checks read.
    """

    CODE = "code"
    CHECKPOINT = "checkpoint"
    REPORT = "report"


@dataclass(frozen=True)
class RefusedFile:
    """A file that was set aside.

    Attributes:
        reason: The sentence that says why.
        clutter: A computer made it for itself: nothing is lost with it.
    """

    name: str
    reason: str
    clutter: bool = False


class Fate(StrEnum):
    """What became of a file of a download."""

    MATCHED = "matched"  # it belongs to a submission, which says itself what it accepts
    SUPERSEDED = "superseded"  # a later attempt counts
    REFUSED = "refused"  # it belongs to nobody, or cannot be used; the reason says why


@dataclass(frozen=True)
class AccountedFile:
    """A file of a download, and what became of it.

    Attributes:
        name: Where it lies in the download; what is inside of an archive follows the archive's name.
        student_id: Whose it is, None when nobody knows.
        reason: A sentence; empty for a file whose name is as it was asked for.
        count: How many files of one kind the line stands for.
        clutter: A computer made it for itself: nothing is lost with it.
    """

    name: str
    fate: Fate
    student_id: str | None = None
    reason: str = ""
    count: int = 1
    clutter: bool = False


@dataclass(frozen=True)
class Lacking:
    """A submission that the LMS lists, and that is not in its download.

    Attributes:
        student_id: Whose it is; what the LMS calls the submission where the LMS knows no student's id.
        upload: What the LMS calls the submission.
        key: As `Origin.key` would be, were it there.
    """

    student_id: str
    lms: str
    upload: str
    key: str


@dataclass(frozen=True)
class Download:
    """What a class's upload held.

    Attributes:
        files: Every file, and what became of it.
        notes: Sentences for the people who run the course.
        source: What the upload was called.
        lacking: What should have been in it.
    """

    files: tuple[AccountedFile, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""
    lacking: tuple[Lacking, ...] = ()


@dataclass(frozen=True)
class Delivery:
    """What is known about when a submission came, besides the moment that an LMS records.

    Attributes:
        hinted_at: The latest time of modification of the files: only a hint, since whoever packs, downloads
            or copies files may change it.
        hint: Where the hint is from, as the end of a sentence; empty without one.
        marked_late: The LMS marks it late without saying by how much.
        extension: This student's own deadline.
    """

    hinted_at: datetime | None = None
    hint: str = ""
    marked_late: bool = False
    extension: datetime | None = None


@dataclass(frozen=True)
class Arrival:
    """When a submission came and was due, by what the LMS records and what people decided.

    Attributes:
        in_time: A person decided that it came in time.
        marked: The LMS marks it late, and nobody said more.
        extension: The student's own deadline.
        decided: What a person said of when it came; None where nobody did.
    """

    received_at: datetime | None
    in_time: bool
    marked: bool
    extension: datetime | None
    decided: Received | InTime | None = None


@dataclass(frozen=True)
class Origin:
    """Which upload a submission is, and what tells whose it is. For staff: it may hold a person's name.

    Attributes:
        key: The same for the same upload of another download; empty in records of older versions.
        upload: What the download calls it.
        listed_as: The id under which it stands while nobody knows whose it is. No student can have such an
            id, and no name is in it.
        lms: `Moodle`, `Canvas`, ... as `grader.lms` names it, or empty.
        number: The LMS's own number, or login, of whoever handed it in; empty where the download tells none.
        person: Whoever handed it in, as the LMS calls them; empty where it does not say.
        carries: The student's id in the names of the files, or of the folder that they lie in; else empty.
        known_id: The student's id by the LMS (its metadata, its list of the class): it outranks `carries`.
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
class KnownUpload:
    """An upload that the gradebook has a result of.

    Attributes:
        row: What the gradebook keeps it under.
        student_id: The id under which it is listed now.
        digest: Of its files.
        decided: A person said whose it is.
        held: Nobody knows whose it is.
        counts: It is the one that counts for that id: a person may have said of several that they are one
            student's.
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
    """One student's upload for one assignment, as it was found.

    Attributes:
        student_id: Sanitized (letters, digits, `-`, `_`) and unique within a class: it becomes a file name.
        assignment_id: The assignment's id, e.g. `vit_defects`.
        files: The files as found, by the name that the student gave.
        digest: SHA-256 over names and contents, hexadecimal. Seeds derive from it.
        received_at: When it was handed in, where the LMS records it: never a guess.
        delivery: What else is known about that: hints, marks, the student's own deadline.
        partial: A file was given by itself: the missing-file rule does not apply.
        set_aside: What could not be taken out of the student's own archives, the archives themselves, and
            earlier attempts.
        notes: Sentences for the report (a name that was written with other digits, ...).
        team: The ids of all who handed it in together, sorted; () for a student's own.
        origin: Which upload it is.
        held: Why nobody knows whose it is, in a sentence; else empty. Then `student_id` is `listed_as`.
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
        role: What it is for, as the assignment calls it.
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
        checkpoint: The `.pth`, if it passed the checks that need no loading; of the first model, where
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
        """(role, file) of all that counts."""
        single = ((Role.CHECKPOINT, self.checkpoint), (Role.REPORT, self.report), *self.others.items())
        return (
            *((str(Role.CODE), path) for path in (self.code, *self.modules.values()) if path is not None),
            *((str(role), path) for role, path in single if path is not None),
            *((str(Role.CHECKPOINT), path) for path in self.further_checkpoints.values()),
        )


# --- answers ---------------------------------------------------------------------------------------------


ANSWERS_FILE = "answers.pdf"  # among the files that belong to the evidence, and beside the student's report


class Undrawn(StrEnum):
    """Why none of the pages was drawn, or not all of them."""

    PROTECTED = "protected"  # it opens with a password only
    DAMAGED = "damaged"  # it is not a PDF that can be opened, or has no pages
    ENDED = "ended"  # opening it ended badly: a crash, or more time or memory than is granted
    FULL = "full"  # its pages take more room than is granted


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
        kept: Its bytes are among the files that belong to the evidence, as `ANSWERS_FILE`.
        pages: How many it has; None where that could not be found out.
        tried: How many, from the first on, were to be drawn before it ended; there is a most.
        drawn: Those of them that were drawn, in order.
        undrawn: Why it ended before that most, or before the first.
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
        """The numbers of the pages that could not be drawn, although those after them were tried."""
        drawn = {page.number for page in self.drawn}
        return tuple(number for number in range(1, self.tried + 1) if number not in drawn)


# --- submission view -------------------------------------------------------------------------------------


CodeLine = tuple[tuple[str, str], ...]
"""A line as pieces of (what it is, text); the texts joined are the line."""


def plain_lines(text: str) -> tuple[CodeLine, ...]:
    """The lines of a text, of which nobody knows what their pieces are."""
    return tuple((("", line),) if line else () for line in text.split("\n"))


def text_of(lines: tuple[CodeLine, ...]) -> str:
    """The text that lines show."""
    return "\n".join("".join(text for _, text in line) for line in lines)


class CellKind(StrEnum):
    """What a cell is."""

    CODE = "code"
    TEXT = "text"  # Markdown: it is shown by its `html`
    RAW = "raw"  # neither: it is shown as it stands


@dataclass(frozen=True)
class ViewCell:
    """A cell, or a whole script.

    Attributes:
        file: `homework.py` or `In [4], cell 9`, as in `Place`.
        lines: Of code and of what is neither code nor text.
        html: The text, or what the code printed and drew; hostile until it is cleaned.
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
        cuts: Sentences: what of it is not shown.
    """

    file: str
    cells: tuple[ViewCell, ...] = ()
    cuts: tuple[str, ...] = ()
