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


@dataclass(frozen=True)
class Submission:
    """One student's upload for one assignment, as it was found.

    Attributes:
        student_id: Sanitized (letters, digits, `-`, `_`) and unique within a class: it becomes a file name.
        assignment_id: The assignment's id, e.g. `vit_defects`.
        files: The files as found, by the name that the student gave.
        digest: SHA-256 over names and contents, hexadecimal. Seeds derive from it.
        received_at: When it was handed in, where the source tells.
        partial: A file was given by itself: the missing-file rule does not apply.
        set_aside: What could not be taken out of the student's own archives, or the archives themselves.
    """

    student_id: str
    assignment_id: str
    files: tuple[Path, ...]
    digest: str
    received_at: datetime | None = None
    partial: bool = False
    set_aside: tuple[RefusedFile, ...] = ()


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
