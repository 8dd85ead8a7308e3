"""Zips, checkpoints and reports opened in a parser: this end hands out bytes and believes no answer.

An archive may be larger than any message: the parser asks for the bytes that it wants to see, and sends what
it unpacks piece by piece.
"""

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from grader.domain.assignment import MEGABYTE
from grader.domain.errors import SubmissionError
from grader.domain.program import Claim
from grader.domain.submission import RefusedFile
from grader.intake.archive_pieces import CHUNK, Begun, Caps, Ended, Piece
from grader.lms.system import MOST_ROWS, Row
from grader.parser.messages import FILE_LIMITS, PIECE, FileRequest
from grader.protocol.frames import ClosedError, Frame, FrameLimit, write_frame
from grader.protocol.timed_answers import Silence, timed_answers
from grader.sandbox.limits import ProcessLimits
from grader.sandbox.processes import Processes

_FURTHEST = 2**62  # no file is longer, and no parser can ask for what is not a position
_SPEED = 25 * MEGABYTE  # bytes per second that unpacking reaches at least; usually ten times as many


class ParserOpener:
    """Opens files in a parser of their own, which a bomb can end and nothing else."""

    def __init__(self, parsers: Processes) -> None:
        self._parsers = parsers

    def contents(self, archive: Path, caps: Caps) -> Iterator[Piece]:
        """What an archive holds.

        Raises:
            SubmissionError: It cannot be used, or unpacking it used more than is granted.
        """
        answers = self.answers(
            archive,
            {"open": FileRequest.ARCHIVE, "caps": asdict(caps)},
            FILE_LIMITS.cpu_seconds + caps.total_bytes // _SPEED,
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
        answers = self.answers(path, {"open": FileRequest.CHECKPOINT}, FILE_LIMITS.cpu_seconds, name=name)
        with contextlib.closing(answers):
            try:
                fault = next(answers).document.get("fault")
            except SubmissionError as error:
                return str(error)
        return str(fault)[:1000] if fault else None

    def claim(self, path: Path, name: str) -> Claim | None:
        """The accuracy that a report names; None as well where it cannot be read."""
        answers = self.answers(path, {"open": FileRequest.REPORT}, FILE_LIMITS.cpu_seconds, name=name)
        with contextlib.closing(answers), contextlib.suppress(SubmissionError):
            match next(answers).document.get("claim"):
                case {"accuracy": float(share), "source": str(source), "text": str(text)} if 0 < share <= 1:
                    return Claim(share, source[:200], text[:300])
        return None

    def metadata_rows(self, path: Path) -> list[Row]:
        """What the metadata of a download says.

        Raises:
            SubmissionError: It cannot be read, or reading it used more than is granted.
        """
        rows: list[Row] = []
        answers = self.answers(path, {"open": FileRequest.METADATA}, FILE_LIMITS.cpu_seconds)
        with contextlib.closing(answers):
            for frame in answers:
                match frame.document:
                    case {"row": list(row)} if len(rows) < MOST_ROWS:
                        rows.append(row)
                    case {"done": True}:
                        return rows
                    case _:
                        raise _ended_badly(path.name, "its answer makes no sense")
        return rows

    def answers(
        self,
        path: Path,
        request: dict[str, Any],
        seconds: int,
        limit: FrameLimit = PIECE,
        *,
        limits: ProcessLimits | None = None,
        name: str = "",
    ) -> Generator[Frame, None, None]:
        """A parser's answers about a file, whose bytes it gets as it asks for them.

        Args:
            path: The file.
            request: What is asked; `open` says what to open it as.
            seconds: Of processor time, unless `limits` says otherwise, and of wall-clock time.
            limit: How large an answer may be.
            limits: What the parser may use; by default `FILE_LIMITS`.
            name: What sentences call the file; by default as it lies there.

        Raises:
            SubmissionError: It cannot be used, or opening it ended badly.
        """
        limits, name = limits or replace(FILE_LIMITS, cpu_seconds=seconds), name or path.name
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(path.open("rb"))
                request = {**request, "name": name, "size": path.stat().st_size}
            except OSError as error:
                raise SubmissionError(
                    f"{name}: cannot be read ({error.strerror}). Upload the file again."
                ) from error
            child = self._parsers.spawn(limits)
            try:
                for frame in stack.enter_context(timed_answers(child, Frame(request), seconds, limit)):
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
