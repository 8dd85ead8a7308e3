"""Reads the names of files in a download, and the files that an LMS itself puts there."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from grader.lms import LMSS
from grader.lms.system import MOST_ROWS, DownloadName, Metadata, Row, SubmissionList, Together


def read_name(name: str) -> DownloadName:
    """What a file's or a folder's name in a download says.

    Args:
        name: As it is in the download.
    """
    return next((reading for lms in LMSS if (reading := lms.read_name(name))), None) or DownloadName(name)


def read_together(files: Mapping[str, Path]) -> Together:
    """What the names in one folder say in combination, if that is more than each says by itself.

    Args:
        files: Name in the download -> path.
    """
    all_readings = [lms.read_together(files) for lms in LMSS]
    return Together(
        {name: meaning for readings in all_readings for name, meaning in readings.names.items()},
        {name: meaning for readings in all_readings for name, meaning in readings.lms_files.items()},
        tuple(attempt for readings in all_readings for attempt in readings.attempts),
    )


def without_person_names(path: str) -> str:
    """A path in a download without the names of people that an LMS puts before their numbers.

    Args:
        path: Folders and a file, as in the download.
    """
    return PurePosixPath(*map(_without_person_name, PurePosixPath(path).parts)).as_posix() if path else path


def _without_person_name(name: str) -> str:
    reading = read_name(name)
    return name.replace(f"{reading.sender_name}_", "", 1) if reading.sender_name else name


def is_metadata(name: str) -> bool:
    """Whether a file of this name is an LMS's own list of the submissions in its download."""
    return _metadata(name) is not None


def metadata_rows(file: BinaryIO, name: str) -> list[Row]:
    """The metadata of a download as plain rows. This runs where a hostile file can do no harm.

    Args:
        file: The metadata.
        name: The file's name, which identifies the LMS.

    Raises:
        SubmissionError: It is too large, or not in the LMS's format.
    """
    metadata = _metadata(name)
    return metadata.rows(file, name)[:MOST_ROWS] if metadata else []


def submission_list(name: str, rows: list[Row]) -> SubmissionList:
    """The submissions that the metadata lists.

    Args:
        name: The file's name.
        rows: From `metadata_rows`; untrusted, as the file may have taken over the process that read it.
    """
    metadata = _metadata(name)
    assert metadata is not None, "only metadata is read"
    return metadata.submissions(rows)


def _metadata(name: str) -> Metadata | None:
    known_metadata = (lms.metadata for lms in LMSS if lms.metadata)
    return next((metadata for metadata in known_metadata if metadata.file == name.casefold()), None)
