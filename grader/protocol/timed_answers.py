"""A request to a forked process and the frames that it answers, within a time."""

import contextlib
from collections.abc import Iterator

from grader.domain.errors import Interruption
from grader.protocol.deadline import Deadline
from grader.protocol.frames import ClosedError, Frame, FrameLimit, ProtocolError, read_frame, write_frame
from grader.protocol.link import WorkerProcess


class Silence(Interruption):
    """The process did not answer as it should; the message says what happened, as a clause."""


@contextlib.contextmanager
def timed_answers(
    child: WorkerProcess, request: Frame, seconds: float, limit: FrameLimit
) -> Iterator[Iterator[Frame]]:
    """The answers to a request as they come; the process is ended afterwards.

    Raises:
        Silence: It ended, took longer than `seconds` for all of its answers, or sent no frame.
    """
    deadline = Deadline(seconds, child.kill)

    def frames() -> Iterator[Frame]:
        try:
            write_frame(child.writer, request)
            while True:
                yield read_frame(child.reader, limit)
        except ClosedError as error:
            reason = f"no answer within {seconds:.0f} s" if deadline.expired else child.ending().words
            raise Silence(reason) from error
        except ProtocolError as error:
            raise Silence(str(error)) from error

    try:
        with deadline:
            yield frames()
    finally:
        child.close()
