"""A request to a forked process and the frames that it answers, within a time."""

import contextlib
import threading
from collections.abc import Iterator

from grader.domain.errors import Interruption
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
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        child.kill()

    clock = threading.Timer(seconds, expire)
    clock.daemon = True
    clock.start()

    def frames() -> Iterator[Frame]:
        try:
            write_frame(child.writer, request)
            while True:
                yield read_frame(child.reader, limit)
        except ClosedError as error:
            reason = f"no answer within {seconds:.0f} s" if expired.is_set() else child.ending().words
            raise Silence(reason) from error
        except ProtocolError as error:
            raise Silence(str(error)) from error

    try:
        yield frames()
    finally:
        clock.cancel()
        child.close()
