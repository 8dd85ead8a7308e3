"""Standard streams and logs as student code finds them, overheard.

The last 200,000 characters of output are kept, and log messages from INFO on. The checks decide what of it
counts as a report; `grader.sandbox` decides how much a process may write.

Tests: tests/worker/test_rigged_runs.py, tests/worker/test_loading.py
"""

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from typing import Any


class BoundedText(io.StringIO):
    """Text output that forgets its beginning when it grows too long."""

    def write(self, text: str, /) -> int:
        """Write, and cut when over twice the bound."""
        count = super().write(text)
        if self.tell() > 400_000:
            kept = self.getvalue()[-200_000:]
            self.seek(0)
            self.truncate()
            super().write(kept)
        return count


class OverheardStream:
    """A standard stream: what is written goes to whoever listens, and on to the process's own stream.

    There is one for each stream, so that what took hold of it while a file was loaded (a logger's handler, a
    progress bar) is overheard later too. The process's own stream is where whoever watches the process sees
    that it writes much.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self.listeners: list[io.StringIO] = []

    def write(self, text: str) -> int:
        """Write a text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with contextlib.suppress(OSError, ValueError, AttributeError):  # the student may have closed it
            getattr(sys, self._own).write(text)
        for listener in self.listeners[-1:]:
            listener.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing waits to be written."""

    def close(self) -> None:
        """Go on all the same, as the next function needs it."""

    def __getattr__(self, name: str) -> Any:
        """Whatever else a stream has is the process's own: its encoding, its number."""
        return getattr(getattr(sys, self._own), name)


class LogHandler(logging.Handler):
    """Messages of the standard logs, from INFO on, whether or not the file's own set-up was executed."""

    def __init__(self, text: io.StringIO) -> None:
        super().__init__(logging.INFO)
        self._text = text

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message; one that cannot be put together is lost, as the logs lose it."""
        with contextlib.suppress(Exception):
            self._text.write(f"{record.getMessage()}\n")


_OUTPUT, _ERRORS = OverheardStream("__stdout__"), OverheardStream("__stderr__")


@contextlib.contextmanager
def overheard() -> Iterator[io.StringIO]:
    """Both standard streams kept for ourselves; the last 200,000 characters can be read afterwards."""
    text = BoundedText()
    with contextlib.ExitStack() as stack:
        for stream in (_OUTPUT, _ERRORS):
            stream.listeners.append(text)
            stack.callback(_forget, stream, text)
        stack.enter_context(contextlib.redirect_stdout(_OUTPUT))
        stack.enter_context(contextlib.redirect_stderr(_ERRORS))
        yield text


@contextlib.contextmanager
def logs_in(text: io.StringIO) -> Iterator[None]:
    """What is logged goes to a text too."""
    root, handler = logging.getLogger(), LogHandler(text)
    level = root.level
    root.addHandler(handler)
    root.setLevel(min(level, logging.INFO))
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


def _forget(stream: OverheardStream, text: io.StringIO) -> None:
    stream.listeners = [listener for listener in stream.listeners if listener is not text]
