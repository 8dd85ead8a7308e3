"""The client's side of a host process: starts one, and asks it for children."""

import contextlib
import json
import os
import selectors
import shutil
import site
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NoReturn

from grader.domain.errors import CourseError, EngineError, Interruption, SandboxError, UsageError
from grader.domain.evidence import Attestation
from grader.domain.program_run import Ending
from grader.sandbox import child_processes, rootfs
from grader.sandbox.child_processes import Exit, OutputTail, ending_of
from grader.sandbox.process_limits import ProcessLimits, memory_controller
from grader.sandbox.readable_files import GPU_CHOICE, NOTHING, GivenFiles, lay_out

# what the dynamic linker and the GPU's driver need from the surroundings
_KEPT_ENVIRONMENT = ("LD_LIBRARY_PATH", *GPU_CHOICE, "NVIDIA_VISIBLE_DEVICES", "TZ")
_LOCKDOWN_SECONDS = 30.0
_CLOSE_SECONDS = 5.0
_TAIL_CHARACTERS = 2000
_LONGEST_ADDRESS = 107  # bytes of a socket's path (man 7 unix)
_LEAST_ROOM = 1_000_000  # bytes that a host needs for its own files
_FAULT = "The course is at fault: "  # before a sentence, as JSON, in the last line of a log
_READ_CHARACTERS = 100_000  # of a log's end, in which an exception is looked for
_STARVED = (
    "The machine ran out of memory, and ended a process for it that had not used up its own limit. Run the "
    "same command again with fewer --jobs, or with more memory."
)
_TRACEBACK = "Traceback (most recent call last):"


def end_for_the_course(error: CourseError) -> NoReturn:
    """End a process that was to become a host; who starts it is told that the course is at fault."""
    sys.exit(f"\n{_FAULT}{json.dumps(str(error))}")


class HostChild:
    """A child that a host forked: see `child_processes.Child`."""

    def __init__(
        self, connection: socket.socket, pid: int, descriptors: Sequence[int], limits: ProcessLimits
    ) -> None:
        """Take over a connection whose host has sent a pid and three descriptors."""
        requests, replies, output = descriptors
        self.pid = pid
        self.attestation = Attestation("unofficial")
        self.writer: BinaryIO = os.fdopen(requests, "wb")
        self.reader: BinaryIO = os.fdopen(replies, "rb", buffering=0)
        self._output = OutputTail(os.fdopen(output, "rb", buffering=0), limits.output_kb * 1000)
        self._connection = connection
        self._exit: Exit | None = None
        self._starved = False
        self._lock = threading.Lock()

    def kill(self) -> None:
        """End it now; the host kills a child whose connection closes."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def wait(self, timeout: float | None = None) -> Exit | None:
        """How it ended; None if it still runs after `timeout` seconds.

        Raises:
            SandboxError: Its host is gone, or the machine ended it for want of memory that others use.
        """
        with self._lock:
            if self._exit is None:
                self._exit = self._awaited_exit(timeout)
        if self._starved:
            raise SandboxError(_STARVED)
        return self._exit

    def _awaited_exit(self, timeout: float | None) -> Exit | None:
        self._connection.settimeout(timeout)
        try:
            message, _ = child_processes.received_packet(self._connection)
        except TimeoutError:
            return None
        except OSError:
            message = None
        if message is None or "exit" not in message:
            raise SandboxError("A host process ended while one of its children was at work. Try again.")
        # the last output is still in the pipe
        self._output.join(1.0)
        ended = message["exit"]
        self._starved = ended.pop("starved")
        return Exit(**ended)

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
        with contextlib.suppress(EngineError):
            self.wait(_CLOSE_SECONDS)
        # a writer with unsent bytes fails to flush into a closed pipe
        with contextlib.suppress(OSError):
            self.writer.close()
        self.reader.close()
        self._connection.close()
        self._output.join(_CLOSE_SECONDS)

    def __enter__(self) -> "HostChild":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _LayersAreLost(Interruption):
    """Within bubblewrap the machine does not give all layers, or the host does not run at all."""


# what one host found out about the machine, the next need not try
_layers_are_lost = threading.Event()


@dataclass(frozen=True)
class _Asked:
    """A host that is to be started: see `Host.start`."""

    module: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    hidden: tuple[Path, ...]
    unofficial: bool
    in_package: bool
    given: GivenFiles

    def command(self, folder: Path, *, wrapped: bool) -> list[str]:
        """The command: Python with this environment's packages, without the working directory."""
        flags = ["-P"] if site.ENABLE_USER_SITE else ["-P", "-s"]
        command = [sys.executable, *flags, "-m", self.module, *self.arguments]
        if not wrapped:
            return command
        modules = [Path(entry) for entry in self.env.get("PYTHONPATH", "").split(os.pathsep) if entry]
        return rootfs.in_bubblewrap(command, folder=folder, hidden=self.hidden, modules=modules)


class Host:
    """A host process, as its starter or another client sees it."""

    def __init__(
        self, address: str, process: subprocess.Popen[bytes] | None = None, folder: Path | None = None
    ) -> None:
        """Use `start` or `connect`."""
        self.address = address
        self._process = process
        self._folder = folder
        self._pid = 0

    @classmethod
    def connect(cls, address: str) -> "Host":
        """The host that listens at the address; somebody else started it and will close it."""
        return cls(address)

    @classmethod
    def start(
        cls,
        module: str,
        arguments: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        hidden: Sequence[Path] = (),
        unofficial: bool = False,
        in_package: bool = False,
        wrapped: bool = False,
        timeout: float = 300.0,
        given: GivenFiles = NOTHING,
    ) -> "Host":
        """Start a host process and wait until it is ready.

        Args:
            module: Its `main` calls `forkserver.main`; run with `python -m`.
            arguments: For the module, in `sys.argv`. Its children can read them.
            env: Added to an otherwise scrubbed environment. Its children can read it.
            hidden: Folders that its children must not see wherever they lie: the course, the submissions.
            unofficial: The operator accepts less isolation than an official grade needs.
            in_package: Where the machine gives no namespaces, the level `container` is enough: only for a
                package that is graded inside of another grader.
            wrapped: Put bubblewrap around it, if that is installed and costs no layer.
            timeout: Seconds until it must be ready.
            given: Files that its children may read in their working folders.

        Raises:
            SandboxError: The machine gives too little isolation.
            EngineError: It did not become ready.
            CourseError: What it was to load of the course cannot be loaded.
        """
        if sys.platform != "linux":
            raise UsageError("Grading others' work needs Linux. `grader check` runs your own here.")
        asked = _Asked(
            module, tuple(arguments), dict(env or {}), tuple(hidden), unofficial, in_package, given
        )
        if wrapped and rootfs.bubblewrap_version() and not _layers_are_lost.is_set():
            with contextlib.suppress(_LayersAreLost):
                return cls._started(asked, timeout, rootfs.bubblewrap_version())
            _layers_are_lost.set()
        return cls._started(asked, timeout)

    @classmethod
    def _started(cls, asked: "_Asked", timeout: float, wall: str = "") -> "Host":
        """A host that is ready.

        Args:
            wall: The version of the bubblewrap to put around it.
        """
        folder = Path(tempfile.mkdtemp(prefix="grader-host-"))
        address = str(folder / "socket")
        if len(os.fsencode(address)) > _LONGEST_ADDRESS:
            folder.rmdir()
            raise EngineError(
                f"{folder.parent}: this folder for temporary files has too long a path for Linux's sockets. "
                "Name one with a shorter path in TMPDIR, as in TMPDIR=/tmp."
            )
        ready, ready_of_host = os.pipe()
        try:
            with child_processes.listening_socket(address) as listener, (folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    asked.command(folder, wrapped=bool(wall)),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=_environment(folder, asked.env),
                    cwd=folder,
                    pass_fds=(listener.fileno(), ready_of_host),
                    start_new_session=True,
                )
                settings = {
                    "listener": listener.fileno(),
                    "ready": ready_of_host,
                    "hidden": [str(path.absolute()) for path in asked.hidden],
                    "unofficial": asked.unofficial,
                    "in_package": asked.in_package,
                    "bubblewrap": wall,
                    "given": str(lay_out(asked.given, folder) or ""),
                    # the other layers are essential: without them nothing is graded anyway
                    "given_up": [] if memory_controller() else ["cgroup"],
                    # the signal follows the starting thread, so only the main thread may ask for it
                    "die_with_starter": threading.current_thread() is threading.main_thread(),
                }
                os.close(ready_of_host)
                ready_of_host = -1
                host = cls(address, process, folder)
                host._await_ready(settings, ready, timeout)
        except BaseException:
            with contextlib.suppress(UnboundLocalError):
                host.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            for descriptor in (ready, ready_of_host):
                if descriptor >= 0:
                    os.close(descriptor)
        return host

    def _await_ready(self, settings: dict[str, object], ready: int, timeout: float) -> None:
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(settings).encode() + b"\n")
            self._process.stdin.flush()
        packed_answer = _read_until_end(ready, time.monotonic() + timeout)
        if packed_answer is None:
            raise EngineError(
                f"The host process was not ready within {timeout:g} s. It said: {self._log_tail()}"
            )
        answer = json.loads(packed_answer or b"{}")
        if not answer and self._folder is not None and shutil.disk_usage(self._folder).free < _LEAST_ROOM:
            raise EngineError(
                f"{self._folder.parent}: no room is left for temporary files. Make room there, or name "
                "another folder in TMPDIR, and run the same command again."
            )
        if not answer and (fault := self._fault_of_the_course()):
            raise CourseError(fault)
        if "lost" in answer or (not answer and settings["bubblewrap"]):
            raise _LayersAreLost
        if "error" in answer:
            raise SandboxError(answer["error"])
        if not answer:
            raise EngineError(
                "A process of the grader's own ended before it was ready. If it misses something, install "
                f"the grader with all of its packages again. It said: {self._last_words()}"
            )
        self._pid = answer["ready"]

    def _fault_of_the_course(self) -> str:
        """What `end_for_the_course` was given; empty if it ended otherwise."""
        last = self._log_tail(_READ_CHARACTERS).rpartition("\n")[2]
        return str(json.loads(last.removeprefix(_FAULT))) if last.startswith(_FAULT) else ""

    def _last_words(self) -> str:
        """The exception that ended it, without the places it passed through; else the end of its log."""
        log = self._log_tail(_READ_CHARACTERS)
        _, traceback, after = log.rpartition(_TRACEBACK)
        lines = after.splitlines()[1:]
        raised = next((number for number, line in enumerate(lines) if line[:1].strip()), None)
        if not traceback or raised is None:
            return log[-_TAIL_CHARACTERS:]
        return "\n".join(lines[raised:])[:_TAIL_CHARACTERS]

    def _log_tail(self, characters: int = _TAIL_CHARACTERS) -> str:
        if self._folder is None:
            return ""
        log = (self._folder / "log").read_text(errors="replace")
        return log[-characters:].strip() or "(nothing)"

    def spawn(self, limits: ProcessLimits, gpu: bool = False) -> HostChild:
        """A new child, locked down and attested; it begins its function now.

        Raises:
            SandboxError: It could not be isolated as intended; nothing was executed.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(_LOCKDOWN_SECONDS)
        child = None
        try:
            connection.connect(self.address)
            child_processes.send_packet(connection, {"limits": asdict(limits), "gpu": gpu})
            message, descriptors = child_processes.received_packet(connection, 3)
            if message is not None and len(descriptors) == 3:
                child = HostChild(connection, message["pid"], descriptors, limits)
                message, _ = child_processes.received_packet(connection)
            if child is None or message is None or "attestation" not in message:
                raise SandboxError((message or {}).get("error") or self._died())
            proof = message["attestation"]
            child.attestation = Attestation(proof["level"], proof["layers"], tuple(proof["missing"]))
        except OSError as error:
            self._discard(connection, child)
            raise SandboxError(f"{self._died()} ({error})") from error
        except BaseException:
            self._discard(connection, child)
            raise
        return child

    def spares(self) -> tuple[int, ...]:
        """The pids, as /proc shows them, of the children that wait for a request; none of them ran anything.

        Raises:
            SandboxError: The host is gone.
        """
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.settimeout(_LOCKDOWN_SECONDS)
                connection.connect(self.address)
                child_processes.send_packet(connection, {"spares": True})
                message, _ = child_processes.received_packet(connection)
        except OSError as error:
            raise SandboxError(f"{self._died()} ({error})") from error
        return tuple((message or {}).get("spares", ()))

    def _died(self) -> str:
        return f"A host process does not answer, so nothing was executed. Its log ends: {self._log_tail()}"

    @staticmethod
    def _discard(connection: socket.socket, child: HostChild | None) -> None:
        if child is None:
            connection.close()
        else:
            child.close()

    def close(self) -> None:
        """End the host and all its children; but not a host that somebody else started."""
        if self._process is None or self._folder is None:
            return
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode != 0:
            _remove_cgroups(self._pid)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "Host":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _remove_cgroups(host_pid: int) -> None:
    """Remove the cgroups of a host that could not do it itself."""
    controller = memory_controller()
    if controller is not None:
        controller.remove_of(host_pid)


def _environment(folder: Path, added: Mapping[str, str]) -> dict[str, str]:
    """A scrubbed environment: one thread per library, nothing secret."""
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    if site.ENABLE_USER_SITE:
        kept["PYTHONUSERBASE"] = site.getuserbase()
    threads = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM")
    return {
        **kept,
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "MPLBACKEND": "Agg",
        "PYTHONDONTWRITEBYTECODE": "1",
        # each arena reserves 64 MB of address space, by which memory may be bounded
        "MALLOC_ARENA_MAX": "2",
        # the heap grows by huge pages where the kernel has any: a fork is asked for fewer, larger ones
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        **added,
    }


def _read_until_end(descriptor: int, deadline: float) -> bytes | None:
    """What is written before the other end closes; None after the deadline (seconds, monotonic)."""
    content = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while (remaining := deadline - time.monotonic()) > 0:
            if selector.select(remaining):
                part = os.read(descriptor, 65_536)
                if not part:
                    return content
                content += part
    return None
