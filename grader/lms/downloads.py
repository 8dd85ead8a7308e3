"""What the names of files in a download tell, and the files that an LMS puts there itself."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from grader.lms import LMSS
from grader.lms.system import MOST_ROWS, DownloadName, Metadata, Row, SubmissionList, Together


def read_name(name: str) -> DownloadName:
    """What a file's or a folder's name in a download tells.

    Args:
        name: As it is in the download.
    """
    return next((told for one in LMSS if (told := one.read_name(name))), None) or DownloadName(name)


def read_together(files: Mapping[str, Path]) -> Together:
    """What the files of one folder tell together, where that is more than each tells by itself.

    Args:
        files: Name in the download -> where it is.
    """
    whole = [one.read_together(files) for one in LMSS]
    return Together(
        {name: told for one in whole for name, told in one.names.items()},
        {name: told for one in whole for name, told in one.own.items()},
        tuple(attempt for one in whole for attempt in one.attempts),
    )


def nameless(path: str) -> str:
    """A path in a download with the numbers of people in the place of the names that an LMS puts before them.

    Args:
        path: Of folders and a file, as they are in the download.
    """
    return PurePosixPath(*map(_nameless, PurePosixPath(path).parts)).as_posix() if path else path


def _nameless(name: str) -> str:
    told = read_name(name)
    return name.replace(f"{told.called}_", "", 1) if told.called else name


def is_metadata(name: str) -> bool:
    """Whether a file of this name is an LMS's own list of the submissions in its download."""
    return _metadata(name) is not None


def metadata_rows(file: BinaryIO, name: str) -> list[Row]:
    """What the metadata of a download says, as plain rows. This runs where a hostile file does no harm.

    Args:
        file: The metadata.
        name: Of the file, by which it is known whose it is.

    Raises:
        SubmissionError: It is too large, or is not what the LMS writes.
    """
    metadata = _metadata(name)
    return metadata.rows(file, name)[:MOST_ROWS] if metadata else []


def submission_list(name: str, rows: list[Row]) -> SubmissionList:
    """The submissions that the metadata lists.

    Args:
        name: Of the file.
        rows: As `metadata_rows` gives them: whoever read the file may have been taken over by it.
    """
    metadata = _metadata(name)
    assert metadata is not None, "only metadata is read"
    return metadata.submissions(rows)


def _metadata(name: str) -> Metadata | None:
    every = (one.metadata for one in LMSS if one.metadata)
    return next((one for one in every if one.file == name.casefold()), None)
