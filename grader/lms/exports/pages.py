"""Several files of an export, and what somebody should know of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pages:
    """What an export of several files came to.

    Attributes:
        files: Path below the export's folder -> content.
        remarks: A line for each student that somebody should know of.
        grades: Student id -> the grade that is in them.
    """

    files: Mapping[str, bytes]
    remarks: tuple[str, ...]
    grades: Mapping[str, float] = field(default_factory=dict)
