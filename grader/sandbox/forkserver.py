"""A host process: loads the heavy libraries once, then forks a locked-down child per request.

A host has one thread, holds no secret, listens on one local socket and ends with the process that started
it. One connection is one child: the child lives no longer than its connection. With `LOCAL_FLAG` the same
module is one plain process, which `LocalProcesses` starts with the interface of a host: for a student's
own code on the student's own machine.
"""

import contextlib
import gc
import io
import json
import os
import signal
import site
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from grader.domain.errors import EngineError, GraderError, SandboxError
from grader.domain.evidence import Attestation
from grader.domain.program_run import Ending
from grader.sandbox import libc
from grader.sandbox.child_processes import Exit, OutputTail, ending_of
from grader.sandbox.lockdown import Layer, Lockdown
from grader.sandbox.namespaces import (
    Identity,
    enter_host_namespaces,
    identity,
    own_pid_namespace,
    pid_in_host_proc,
)
from grader.sandbox.process_limits import ProcessLimits

if TYPE_CHECKING:
    from grader.sandbox.host_loop import HostLoop


ChildFunction = Callable[[BinaryIO, BinaryIO], None]
LOCAL_FLAG = "--local"


def main(child: ChildFunction, prepare: Callable[[], None], lockdown: Lockdown | None = None) -> None:
    """The body of a host module's `main`, which `Host.start` and `LocalProcesses` run with `python -m`.

    Args:
        child: What a child does with its requests and replies; it leaves when it returns.
        prepare: Loads the heavy libraries, once. Modules that start threads must be imported here, not
            before.
        lockdown: `Lockdown.FULL` (the default) or `Lockdown.NONE` for children that are trusted.
    """
    if LOCAL_FLAG in sys.argv:
        sys.argv.remove(LOCAL_FLAG)
        _run_locally(child, prepare)
        return
    settings = json.loads(sys.stdin.buffer.readline())
    ready = settings["ready"]
    try:
        host = _prepared_host(child, prepare, lockdown or Lockdown.FULL, settings)
    except GraderError as error:
        # the machine may give without bubblewrap what is missing within it
        failure = {"lost": True} if settings["bubblewrap"] else {"error": str(error)}
        os.write(ready, json.dumps(failure).encode())
        os._exit(1)
    os.write(ready, json.dumps({"ready": pid_in_host_proc()}).encode())
    os.close(ready)
    host.serve_until_closed()
    os._exit(0)


def serve(child: ChildFunction, *, listener: socket.socket, lockdown: Lockdown) -> None:
    """Fork a child per connection until standard input ends; for a process that has loaded everything.

    Args:
        child: What a child does with its requests and replies.
        listener: A listening local socket (`host_messages.listening_socket`) in a folder of the host's own,
            which is removed at the end.
        lockdown: What the children put on themselves; every layer must be available. The calling process
            moves to namespaces of its own if the layers need that.

    Raises:
        SandboxError: The namespaces are refused.
    """
    from grader.sandbox.host_loop import HostLoop

    who, own_namespace = _entered_namespaces(lockdown)
    HostLoop(child, listener, lockdown, who=who, own_namespace=own_namespace).serve_until_closed()


def _prepared_host(
    child: ChildFunction, prepare: Callable[[], None], lockdown: Lockdown, settings: dict[str, Any]
) -> "HostLoop":
    # the loop needs Linux; this module is also what `--local` runs on other systems
    from grader.sandbox.host_loop import HostLoop

    missing: tuple[str, ...] = ()
    if not lockdown.trusted:
        hidden = tuple(Path(folder) for folder in settings["hidden"])
        wanted = lockdown.layers - frozenset(settings["given_up"])
        asked = replace(lockdown, unofficial=settings["unofficial"], hidden=hidden)
        lockdown, missing = _planned(asked, in_package=settings["in_package"])
        if settings["bubblewrap"] and not lockdown.layers >= wanted:
            raise SandboxError(" ".join(missing))
    who, own_namespace = _entered_namespaces(lockdown)
    unguarded = own_namespace < 0 and settings["die_with_starter"]
    if unguarded:
        libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
    prepare()
    if unguarded:
        # from here on the loop notices the end of the lifeline, and cleans up before it leaves
        libc.prctl(libc.PR_SET_PDEATHSIG, 0)
    # what is loaded now is shared with every child: the collector must not touch (and so copy) it
    gc.collect()
    gc.freeze()
    listener = socket.socket(fileno=settings["listener"])
    return HostLoop(
        child,
        listener,
        lockdown,
        who=who,
        own_namespace=own_namespace,
        missing=missing,
        bubblewrap=settings["bubblewrap"],
        given=Path(settings["given"]) if settings["given"] else None,
    )


def _entered_namespaces(lockdown: Lockdown) -> tuple[Identity, int]:
    """How children change their user, and the host's PID namespace; -1 if they get none of their own."""
    who = Identity(own_uids=False) if lockdown.trusted else identity(contained=lockdown.contained)
    own_namespace = -1
    if Layer.NAMESPACES in lockdown.layers:
        try:
            enter_host_namespaces(who)
        except OSError as error:
            raise SandboxError(
                f"The host process could not enter its namespaces ({error}). A module that starts threads "
                "may be imported too early: import it in `prepare`."
            ) from error
        own_namespace = own_pid_namespace()
    libc.prctl(libc.PR_SET_DUMPABLE, 0)
    return who, own_namespace


def _planned(lockdown: Lockdown, *, in_package: bool) -> tuple[Lockdown, tuple[str, ...]]:
    """The lockdown with the layers that this machine gives, and sentences on the missing ones.

    Args:
        in_package: Where that is too little, a user of its own within the container is enough.

    Raises:
        SandboxError: There are too few, and the operator does not accept that.
    """
    from grader.sandbox.survey import survey_by_forks

    survey = survey_by_forks()
    missing = [state.detail for state in survey.states if not state.available]
    missing += [f"{layer}: switched off by the operator." for layer in Layer if layer not in lockdown.layers]
    kept = lockdown.layers & survey.layers
    if not lockdown.unofficial and not kept >= {Layer.NAMESPACES, Layer.LANDLOCK, Layer.SECCOMP}:
        if in_package and identity(contained=True).own_uids:
            return replace(lockdown, layers=kept - {Layer.NAMESPACES}, contained=True), tuple(missing)
        raise SandboxError(
            "This machine gives too little isolation to run other people's code, so nothing was executed. "
            + " ".join(missing)
        )
    return replace(lockdown, layers=kept), tuple(missing)


def _run_locally(child: ChildFunction, prepare: Callable[[], None]) -> None:
    """Serve one conversation over standard input and output, without any layer."""
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    # what the code prints must not end up among the replies
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    prepare()
    status = 0
    try:
        child(reader, writer)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - the last frame of this process
        sys.excepthook(*sys.exc_info())
        status = 1
    for stream in (writer, sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status & 255)


# --- plain processes -------------------------------------------------------------------------------------


_CLOSE_SECONDS = 5.0


class LocalChild:
    """A plain process: see `processes.Child`."""

    def __init__(self, process: "subprocess.Popen[bytes]", limits: ProcessLimits) -> None:
        """Take over a process with pipes for its three streams."""
        self._process = process
        self.pid = process.pid
        self.attestation = Attestation("local")
        # Popen types its pipes as optional and as general binary streams
        # buffered, because a raw write may write only a part
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
