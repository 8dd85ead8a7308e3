"""Zips, checkpoints and reports opened in a parser: the side that asks hands out bytes and believes no answer.

An archive may be larger than any message: the parser asks for the bytes that it wants to see, and sends what
it unpacks piece by piece.
"""

import contextlib
import io
from collections.abc import Generator, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from grader.analysis.claims import claim_in_report
from grader.domain.errors import SubmissionError
from grader.domain.program import Claim
from grader.domain.submission import RefusedFile
from grader.intake.archive import CHUNK, MEGABYTE, Begun, Caps, Ended, Piece, contents
from grader.intake.checkpoint import checkpoint_fault
from grader.intake.gradescope import MOST_SUBMISSIONS, Row, metadata_rows
from grader.intake.report import report_pages
from grader.protocol.exchange import Silence, conversation
from grader.protocol.frames import ClosedError, Frame, FrameLimit, read_frame, write_frame
from grader.sandbox.limits import ProcessLimits
from grader.sandbox.processes import Processes

LIMITS = ProcessLimits(memory_mb=500, cpu_seconds=30, file_mb=1, scratch_mb=16)
_FURTHEST = 2**62  # no file is longer, and no parser can ask for what is no position
SPEED = 25 * MEGABYTE  # bytes per second that unpacking reaches at least; usually ten times as many
FROM_PARSER = FrameLimit(document=1_000_000, arrays=CHUNK)
FROM_PIPELINE = FrameLimit(document=100_000, arrays=CHUNK)


class OpenedApart:
    """Opens files in a parser of their own, which a bomb can end and nothing else."""

    def __init__(self, parsers: Processes) -> None:
        self._parsers = parsers

    def contents(self, archive: Path, caps: Caps) -> Iterator[Piece]:
        """What an archive holds.

        Raises:
            SubmissionError: It cannot be used, or unpacking it used more than is granted.
        """
        answers = self.answers(
            archive, {"open": "archive", "caps": asdict(caps)}, LIMITS.cpu_seconds + caps.total_bytes // SPEED
        )
        with contextlib.closing(answers):
            for frame in answers:
                match frame.document:
                    case {"begun": str(name), "modified": int(modified)}:
                        yield Begun(name, modified)
                    case {"chunk": True} if "data" in frame.arrays:
                        yield frame.arrays["data"].tobytes()
                    case {"ended": str(reason)}:
                        yield Ended(reason or None)
                    case {"left": [str(name), str(reason), bool(clutter)]}:
                        yield RefusedFile(name, reason, clutter)
                    case {"done": True}:
                        return
                    case _:
                        raise _ended_badly(archive.name, "its answer makes no sense")

    def checkpoint_fault(self, path: Path, name: str) -> str | None:
        """Why a checkpoint is not accepted."""
        answers = self.answers(path, {"open": "checkpoint"}, LIMITS.cpu_seconds, name=name)
        with contextlib.closing(answers):
            try:
                fault = next(answers).document.get("fault")
            except SubmissionError as error:
                return str(error)
        return str(fault)[:1000] if fault else None

    def claim(self, path: Path, name: str) -> Claim | None:
        """The accuracy that a report names; None as well where it cannot be read."""
        answers = self.answers(path, {"open": "report"}, LIMITS.cpu_seconds, name=name)
        with contextlib.closing(answers), contextlib.suppress(SubmissionError):
            match next(answers).document.get("claim"):
                case {"accuracy": float(share), "source": str(source), "text": str(text)} if 0 < share <= 1:
                    return Claim(share, source[:200], text[:300])
        return None

    def metadata_rows(self, path: Path) -> list[Row]:
        """What the metadata of a Gradescope export says.

        Raises:
            SubmissionError: It cannot be read, or reading it used more than is granted.
        """
        rows: list[Row] = []
        answers = self.answers(path, {"open": "metadata"}, LIMITS.cpu_seconds)
        with contextlib.closing(answers):
            for frame in answers:
                match frame.document:
                    case {"row": list(row)} if len(rows) < MOST_SUBMISSIONS:
                        rows.append(row)
                    case {"done": True}:
                        return rows
                    case _:
                        raise _ended_badly(path.name, "its answer makes no sense")
        return rows

    def answers(
        self,
        path: Path,
        job: dict[str, Any],
        seconds: int,
        limit: FrameLimit = FROM_PARSER,
        *,
        limits: ProcessLimits | None = None,
        name: str = "",
    ) -> Generator[Frame, None, None]:
        """A parser's answers about a file, whose bytes it gets as it asks for them.

        Args:
            path: The file.
            job: What is asked; `open` says what to open it as.
            seconds: Of processor time, unless `limits` says otherwise, and of wall-clock time.
            limit: How large an answer may be.
            limits: What the parser may use; by default `LIMITS`.
            name: What sentences call the file; by default as it lies there.

        Raises:
            SubmissionError: It cannot be used, or opening it ended badly.
        """
        limits, name = limits or replace(LIMITS, cpu_seconds=seconds), name or path.name
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(path.open("rb"))
                job = {**job, "name": name, "size": path.stat().st_size}
            except OSError as error:
                raise SubmissionError(
                    f"{name}: cannot be read ({error.strerror}). Upload the file again."
                ) from error
            child = self._parsers.spawn(limits)
            try:
                for frame in stack.enter_context(conversation(child, Frame(job), seconds, limit)):
                    match frame.document:
                        case {"read": [int(offset), int(count)]}:
                            # one that is gone says so on the next reading
                            with contextlib.suppress(ClosedError):
                                write_frame(child.writer, _part(file, offset, count))
                        case {"refused": str(sentence)}:
                            raise SubmissionError(sentence[:2000])
                        case {"failed": str(what)}:  # an archive of which nobody thought yet
                            raise _ended_badly(name, what[:300])
                        case {"exhausted": True}:
                            raise _ended_badly(name, limits.exceeded("memory"))
                        case _:
                            yield frame
            except Silence as silence:
                raise _ended_badly(name, str(silence)) from silence


def _ended_badly(name: str, why: str) -> SubmissionError:
    return SubmissionError(
        f"{name}: opening it ended badly ({why}). Pack only what was asked for and upload that."
    )


def _part(file: BinaryIO, offset: int, count: int) -> Frame:
    file.seek(min(max(offset, 0), _FURTHEST))
    return Frame({}, {"data": np.frombuffer(file.read(min(max(count, 0), CHUNK)), dtype=np.uint8)})


# --- in the parser ----------------------------------------------------------------------------------------


def serve_opening(job: dict[str, Any], reader: BinaryIO, writer: BinaryIO) -> None:
    """Answer about the file that a job names.

    Raises:
        SubmissionError: It cannot be used.
    """
    file = asked_file(job, reader, writer)
    if job["open"] == "checkpoint":
        write_frame(writer, Frame({"fault": checkpoint_fault(file, job["name"])}))
        return
    if job["open"] == "report":
        claim = claim_in_report(job["name"], report_pages(file))
        write_frame(writer, Frame({"claim": asdict(claim) if claim else None}))
        return
    if job["open"] == "metadata":
        for row in metadata_rows(file, job["name"]):
            write_frame(writer, Frame({"row": row}))
        write_frame(writer, Frame({"done": True}))
        return
    for piece in contents(file, job["name"], Caps(**job["caps"])):
        write_frame(writer, _told(piece))
    write_frame(writer, Frame({"done": True}))


def asked_file(job: dict[str, Any], reader: BinaryIO, writer: BinaryIO) -> BinaryIO:
    """The file that a job names, whose bytes are asked for as they are read."""
    return io.BufferedReader(_Asked(reader, writer, job["size"]), CHUNK // 4)


def _told(piece: Piece) -> Frame:
    match piece:
        case bytes():
            return Frame({"chunk": True}, {"data": np.frombuffer(piece, dtype=np.uint8)})
        case Begun(name, modified):
            return Frame({"begun": name, "modified": modified})
        case Ended(reason):
            return Frame({"ended": reason or ""})
        case RefusedFile(name, reason, clutter):
            return Frame({"left": [name, reason, clutter]})


class _Asked(io.RawIOBase):
    """A file of which somebody else holds the bytes."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO, size: int) -> None:
        self._reader = reader
        self._writer = writer
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("a position before the file's beginning")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), CHUNK, max(self._size - self._at, 0))
        if count == 0:
            return 0
        write_frame(self._writer, Frame({"read": [self._at, count]}))
        data = read_frame(self._reader, FROM_PIPELINE).arrays["data"]
        buffer[: len(data)] = data.data
        self._at += len(data)
        return len(data)
