"""Several files of an export, and what somebody should know of them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Pages:
    """What an export of several files came to.

    Attributes:
        files: Path below the export's folder -> content.
        remarks: A line for each student that somebody should know of.
    """

    files: Mapping[str, bytes]
    remarks: tuple[str, ...]
