"""Asks the process that makes the checks, which is started when it is asked for the first time."""

import contextlib
import json
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from grader.domain.errors import EngineError

SERVICE = "grader.jupyter.check_service"
STOP_SECONDS = 5.0
MOST_SAID = 300  # characters


class CheckProcess:
    """A process that answers one request after another, or is replaced if it ended since the last one."""

    def __init__(self, module: str = SERVICE) -> None:
        """Nothing is started yet.

        Args:
            module: What it runs.
        """
        self._module = module
        self._process: subprocess.Popen[str] | None = None
        self._said: IO[bytes] | None = None  # by the process, besides its answers

    def answers(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What it tells of a request; the last answer says that it is.

        Raises:
            EngineError: It could not be started, or ended before it had answered.
        """
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                yield answer
                if answer["last"]:
                    return
        except OSError:
            pass  # it ended
        said = self._last_words()
        self.close()
        raise EngineError(f"The process that makes the checks ended ({said}). Check again.")

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._started()
        return self._process

    def _started(self) -> "subprocess.Popen[str]":
        # without -P a file of the student's, torch.py, would shadow the library
        flags = ["-P"] if site.ENABLE_USER_SITE else ["-P", "-s"]
        # a kernel draws into the notebook, which nobody else can
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process runs
        environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
        try:
            return subprocess.Popen(
                [sys.executable, *flags, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                encoding="utf-8",
                env=environment,
                # what interrupts the kernel does not interrupt it: see `close`
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(
                f"Python could not be started ({error}). Is {sys.executable} intact?"
            ) from error

    def _last_words(self) -> str:
        if self._said is None:
            return "it was not running"
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:MOST_SAID] if lines else "it said nothing"

    def close(self) -> None:
        """End it, with the workers that it started."""
        if self._said is not None:
            self._said.close()
            self._said = None
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process = None
