"""Turns an upload into the accepted files of each student. Nothing is executed or unpickled."""

from grader.intake.file_roles import intake
from grader.intake.upload import (
    KnownOwners,
    Uploads,
    require_apart,
    require_path,
    submissions,
    with_extensions,
)

__all__ = [
    "KnownOwners",
    "Uploads",
    "intake",
    "require_apart",
    "require_path",
    "submissions",
    "with_extensions",
]
