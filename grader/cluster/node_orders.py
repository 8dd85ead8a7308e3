"""What travels between the coordinator and a node, and how files are packed for it.

No file system is shared: an assignment's folder, a submission's files and the prepared data go as bytes. What
a submission is examined with goes along (its seeds, its drawn values), never the course's secret. Both ends
run the same version of the grader, so that types need no versions of their own.
"""

import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError, Interruption
from grader.domain.evidence import Attestation
from grader.domain.limits import MEGABYTE
from grader.domain.submission import Submission
from grader.files.known_folders import visible
from grader.files.zip_archive import zipped
from grader.grading.examiner import SubmissionWork
from grader.grading.submission_draws import SubmissionDraws


class NodeUnready(Interruption):
    """A node has left a run, or never joined it: what it had of that run is gone."""


class NodeBusy(Interruption):
    """A node is at work on a run of another coordinator, which lives."""


@dataclass(frozen=True)
class NodeSurvey:
    """What a node says of itself.

    Attributes:
        host: Its name.
        versions: Package -> its version there: what results depend on.
        seconds_left: Until it will end, by its own clock; None: it does not know of an end.
    """

    host: str
    versions: Mapping[str, str]
    seconds_left: float | None


@dataclass(frozen=True)
class RunOrder:
    """What a node needs before its first submission of a run.

    Attributes:
        run_id: Of the run: a word that nobody can guess.
        results: What stands for the folder of the results: only one run at a time is at work for it.
        assignment: As the coordinator has it; its folder is the one in `files` there.
        files: The assignment's folder, as a zip.
        minimum_level: The least isolation that the course asks for.
        unofficial: Accept less isolation than an official grade needs.
        device: Where training is to run: `cpu`, `cuda` or `auto`.
    """

    run_id: str
    results: str
    assignment: Assignment
    files: bytes = field(repr=False)
    minimum_level: str
    unofficial: bool
    device: str


@dataclass(frozen=True)
class NodeReady:
    """A node that takes submissions.

    Attributes:
        isolation: Of the processes that read submissions, as it was proved there.
        device: Where training runs.
    """

    isolation: Attestation
    device: str


@dataclass(frozen=True)
class SentFile:
    """A file of a submission.

    Attributes:
        name: With the folders before it, below the folder that all files share.
        size: In bytes.
        content: None where the content does not matter: it is larger than any file may be, or is a link.
        link: It is a link, which nothing follows.
    """

    name: str
    size: int
    content: bytes | None = field(repr=False)
    link: bool = False


@dataclass(frozen=True)
class ExamineOrder:
    """A submission that a node is to examine.

    Attributes:
        work: Its submission is without its files.
        data_digest: Of the data that it is trained on; empty: nothing is trained.
    """

    run_id: str
    work: SubmissionWork
    files: tuple[SentFile, ...]
    draws: SubmissionDraws
    data_digest: str
    graded_at: datetime


# --- files -----------------------------------------------------------------------------------------------


def pack_folder(folder: Path) -> bytes:
    """The files of a folder as a zip; nothing that begins with a dot, and no compiled modules."""
    files = [path for path in visible(folder, "**/*") if path.is_file()]
    return zipped((path.relative_to(folder).as_posix(), path.read_bytes()) for path in files)


def unpack_folder(packed: bytes, folder: Path) -> None:
    """Write the files of `pack_folder` into a folder, which is made."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder)


def packed_files(submission: Submission, largest_mb: float) -> tuple[SentFile, ...]:
    """The files of a submission, in their order.

    Args:
        largest_mb: Larger files are refused anyway, so that only their size travels, in 10**6 bytes.
    """
    if not submission.files:
        return ()
    top = Path(os.path.commonpath([path.parent for path in submission.files]))
    return tuple(_packed(path, path.relative_to(top), largest_mb * MEGABYTE) for path in submission.files)


def _packed(path: Path, name: Path, largest: float) -> SentFile:
    if path.is_symlink() or not path.is_file():
        return SentFile(name.as_posix(), 0, None, link=True)
    size = path.stat().st_size
    return SentFile(name.as_posix(), size, path.read_bytes() if size <= largest else None)


def unpacked_submission(order: ExamineOrder, folder: Path) -> Submission:
    """The submission with its files in a folder of this machine.

    Args:
        folder: It is there, and empty.

    Raises:
        EngineError: A file's name leads out of the folder.
    """
    return replace(order.work.submission, files=tuple(_unpacked(file, folder) for file in order.files))


def _unpacked(file: SentFile, folder: Path) -> Path:
    name = PurePosixPath(file.name)
    if name.is_absolute() or ".." in name.parts:
        raise EngineError(f"A file of a submission has the name {file.name}, which leads out of its folder.")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.link:
        path.symlink_to(folder / "nothing")
    elif file.content is not None:
        path.write_bytes(file.content)
    else:
        path.touch()
        os.truncate(path, file.size)  # a sparse file: it takes no space
    return path
