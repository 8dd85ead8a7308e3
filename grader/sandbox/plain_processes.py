"""Plain processes with the interface of a host: for a student's own code on the student's own machine."""

import contextlib
import io
import os
import site
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from grader.domain.ending import Ending
from grader.domain.errors import EngineError
from grader.domain.evidence import Attestation
from grader.sandbox.forkserver import LOCAL_FLAG
from grader.sandbox.limits import ProcessLimits
from grader.sandbox.processes import Exit, OutputTail, ending_of

_CLOSE_SECONDS = 5.0


class LocalChild:
    """A plain process: see `processes.Child`."""

    def __init__(self, process: "subprocess.Popen[bytes]", limits: ProcessLimits) -> None:
        """Take over a process with pipes for its three streams."""
        self._process = process
        self.pid = process.pid
        self.attestation = Attestation("local")
        # Popen types its pipes as optional and as general binary streams
        # buffered, because a raw write may write a part only
        self.writer: BinaryIO = io.BufferedWriter(cast(io.RawIOBase, process.stdin))
        self.reader = cast(BinaryIO, process.stdout)
        self._output = OutputTail(cast(BinaryIO, process.stderr), limits.output_kb * 1000)

    def kill(self) -> None:
        """End it now."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> Exit | None:
        """How it ended; None if it still runs after `timeout` seconds."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self._output.join(1.0)
        return Exit(code) if code >= 0 else Exit(None, -code)

    def ending(self) -> Ending:
        """How it ended; waits for the end."""
        return ending_of(self)

    def stderr_tail(self) -> str:
        """The end of what it printed."""
        return self._output.text()

    @property
    def output_cut(self) -> bool:
        """Whether it printed more than its limits keep."""
        return self._output.cut

    def close(self) -> None:
        """Kill it, wait for it, and release what the client holds of it."""
        self.kill()
        self.wait(_CLOSE_SECONDS)
        with contextlib.suppress(OSError):
            self.writer.close()
        self.reader.close()
        self._output.join(_CLOSE_SECONDS)

    def __enter__(self) -> "LocalChild":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LocalProcesses:
    """Children without any layer; limits other than output are not enforced."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Children will run `python -m module --local`.

        Args:
            module: Its `main` calls `forkserver.main`.
            arguments: For the module.
            env: Added to the surrounding environment.
            folder: Where they work; None: where this process does.
        """
        self._module = module
        self._arguments = tuple(arguments)
        self._env = dict(env or {})
        self._folder = folder

    def spawn(self, limits: ProcessLimits, gpu: bool = False) -> LocalChild:
        """A new child. The GPU is always there when the machine has one.

        Raises:
            EngineError: Python could not be started.
        """
        # without -P a student's own torch.py would shadow the library
        flags = ["-P"] if site.ENABLE_USER_SITE else ["-P", "-s"]
        command = [sys.executable, *flags, "-m", self._module, *self._arguments, LOCAL_FLAG]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self._env},
                bufsize=0,
                cwd=self._folder,
            )
        except OSError as error:
            raise EngineError(
                f"Python could not be started ({error}). Is {sys.executable} intact?"
            ) from error
        return LocalChild(process, limits)
