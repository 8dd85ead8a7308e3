"""Child processes as a client sees them, whatever isolates them, and the packets of a host and its client.

It holds how a child ended, the interfaces of a child and of what starts one, and the end of its output. A
packet on the local socket is one JSON object, with file descriptors. `host_client` and `forkserver` start and
end the processes; a malformed message ends the conversation.
"""

import json
import os
import socket
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from grader.domain.errors import EngineError
from grader.domain.evidence import Attestation
from grader.domain.program_run import Ending, EndingLimit
from grader.sandbox.process_limits import ProcessLimits


@dataclass(frozen=True)
class Exit:
    """How a process ended.

    Attributes:
        code: Its exit code; None if a signal ended it. It is never believed: it does not affect a grade.
        signal: The signal's number, if one ended it.
        limit: `memory`, `cpu` or `file_size`, if it is known that such a limit ended it.
        exceeded: That limit as a clause: `it used more than its limit of 3000 MB of memory`.
        memory_mb, near_memory, cpu_seconds: As in `Ending`.
    """

    code: int | None
    signal: int | None = None
    limit: EndingLimit | None = None
    exceeded: str = ""
    memory_mb: int | None = field(default=None, compare=False)
    near_memory: bool = False
    cpu_seconds: float | None = field(default=None, compare=False)

    @property
    def words(self) -> str:
        """How it ended, as a clause: `it was ended by signal 11`."""
        if self.exceeded:
            return self.exceeded
        if self.signal is not None:
            return f"it was ended by signal {self.signal}"
        return f"it ended by itself with exit code {self.code}"


DIED_SECONDS = 5.0


def ending_of(child: "Child") -> Ending:
    """How a child ended; for one whose replies have ended."""
    end = child.wait(DIED_SECONDS)
    if end is None:
        return Ending("it closed its replies and went on")
    return Ending(end.words, end.limit, end.memory_mb, end.near_memory, end.cpu_seconds)


class Child(Protocol):
    """A process that runs code for a client.

    Attributes:
        reader: Its replies, unbuffered: `read(n)` returns what is there, at most n bytes.
        writer: Its requests, buffered: flush after each.
        pid: As its host numbers processes: for messages only.
        attestation: What isolates it; it was observed before the child's function began.
    """

    reader: BinaryIO
    writer: BinaryIO
    pid: int
    attestation: Attestation

    def kill(self) -> None:
        """End it, and everything that it started, now. Harmless when it has ended."""

    def wait(self, timeout: float | None = None) -> Exit | None:
        """How it ended; None if it still runs after `timeout` seconds."""

    def ending(self) -> Ending:
        """How it ended; waits for the end."""

    def stderr_tail(self) -> str:
        """The end of what it printed, as much as its limits keep."""

    @property
    def output_cut(self) -> bool:
        """Whether it printed more than its limits keep."""

    def close(self) -> None:
        """Kill it, wait for it, and release what the client holds of it."""


class Processes(Protocol):
    """Where children come from: a `Host`, or plain processes on a student's own machine."""

    def spawn(self, limits: ProcessLimits, gpu: bool = False) -> Child:
        """A new child.

        Raises:
            SandboxError: It could not be isolated as intended; nothing was executed.
        """


class OutputTail:
    """The end of a stream, read as it comes so that a flood neither blocks the writer nor fills memory."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        """Begin to read.

        Args:
            stream: Unbuffered; closed at its end.
            limit: How many bytes to keep.
        """
        self._stream = stream
        self._limit = limit
        self._parts: deque[bytes] = deque()
        self._kept = 0
        self._lock = threading.Lock()
        self.cut = False
        self._thread = threading.Thread(target=self._drain, name="output", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with self._stream:
            while part := self._read():
                with self._lock:
                    self._parts.append(part)
                    self._kept += len(part)
                    while self._kept - len(self._parts[0]) >= self._limit:
                        self._kept -= len(self._parts.popleft())
                        self.cut = True

    def _read(self) -> bytes:
        try:
            return self._stream.read(65_536) or b""
        except (OSError, ValueError):
            return b""

    def text(self) -> str:
        """What was kept; undecodable bytes are replaced."""
        with self._lock:
            kept = b"".join(self._parts)
        if len(kept) > self._limit:
            self.cut = True
        return kept[-self._limit :].decode("utf-8", errors="replace")

    def join(self, timeout: float) -> None:
        """Wait until the stream has ended, at most `timeout` seconds."""
        self._thread.join(timeout)


# --- host messages ---------------------------------------------------------------------------------------


MOST_PACKET_BYTES = 65_536


def listening_socket(path: str) -> socket.socket:
    """A socket that clients connect to by its path."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(128)
    return listener


def send_packet(connection: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one message, with file descriptors if any.

    Raises:
        OSError: The other side is gone.
    """
    packed = json.dumps(message).encode()
    if len(packed) > MOST_PACKET_BYTES:
        raise EngineError(f"A message of {len(packed)} bytes to a host is too long.")
    if descriptors:
        socket.send_fds(connection, [packed], list(descriptors))
    else:
        connection.send(packed)


def received_packet(
    connection: socket.socket, descriptors: int = 0
) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and its file descriptors; None when the other side has closed.

    Raises:
        OSError: The other side is gone, or did not answer within the socket's time-out.
        EngineError: What arrived is not a message.
    """
    packed, received_fds, _, _ = socket.recv_fds(connection, MOST_PACKET_BYTES, descriptors)
    for descriptor in received_fds:
        os.set_inheritable(descriptor, False)  # Python's function takes flags, but ignores them
    if not packed:
        return None, received_fds
    try:
        message = json.loads(packed)
    except ValueError as error:
        raise EngineError("A host and its client do not understand each other.") from error
    if not isinstance(message, dict):
        raise EngineError("A host and its client do not understand each other.")
    return message, received_fds
