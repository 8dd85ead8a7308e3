"""What was handed in, and what was accepted of it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path


class Role(StrEnum):
    """What a submitted file is for."""

    CODE = "code"
    CHECKPOINT = "checkpoint"
    REPORT = "report"


@dataclass(frozen=True)
class RefusedFile:
    """A file that was set aside, and the sentence that says why."""

    name: str
    reason: str


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
    """

    name: str
    fate: Fate
    student_id: str | None = None
    reason: str = ""
    count: int = 1


@dataclass(frozen=True)
class Download:
    """What a class's upload held.

    Attributes:
        files: Every file, and what became of it.
        notes: Sentences for the people who run the course.
    """

    files: tuple[AccountedFile, ...] = ()
    notes: tuple[str, ...] = ()


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
        decided: Who said when it came, and why.
    """

    received_at: datetime | None
    in_time: bool
    marked: bool
    extension: datetime | None
    decided: str


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


@dataclass(frozen=True)
class Intake:
    """The files of a submission by role, and what was refused.

    Attributes:
        code: The `.py` or `.ipynb` that is graded, if there is one.
        checkpoint: The `.pth`, if it passed the checks that need no loading.
        report: The `.pdf`, if it is one.
        refused: Files set aside, with reasons.
        missing: Roles that the assignment requires and that no file fills.
        notes: Sentences for the report (a name that was nearly right, ...).
    """

    submission: Submission
    code: Path | None = None
    checkpoint: Path | None = None
    report: Path | None = None
    refused: tuple[RefusedFile, ...] = ()
    missing: tuple[Role, ...] = ()
    notes: tuple[str, ...] = field(default=())
