"""Where a warm process is asked: a socket in the user's private folder, and lines of JSON over it."""

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.domain.errors import Interruption
from grader.students.warm.private_folder import LOCK, Lock

MOST_BYTES = 64_000_000  # of one line: a program with its source has some 100 kB
LONGEST_PATH = 100  # bytes that every system takes as a socket's name
BACKLOG = 16
LOCAL_HOST = "127.0.0.1"
HAS_LOCAL_SOCKETS = hasattr(socket, "AF_UNIX")


class Unanswered(Interruption):
    """A warm process does not answer, or not to the end."""


@dataclass(frozen=True)
class WarmAddress:
    """A place at which one warm process at most can be asked.

    Attributes:
        folder: The user's private folder.
        name: What of its files are called.
        by_port: It listens at a port of this machine, since the system has no local sockets for Python: a
            secret in a file of the folder is asked for.
    """

    folder: Path
    name: str
    by_port: bool = not HAS_LOCAL_SOCKETS

    @property
    def lock(self) -> Lock:
        """What the process that may listen here holds."""
        return Lock(self.folder / f"{self.name}{LOCK}")

    @property
    def workers(self) -> Path:
        """The folder of those who fork workers for it."""
        return self.folder / f"{self.name}.workers"

    @property
    def _socket(self) -> Path:
        path = self.folder / f"{self.name}.socket"
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise OSError(f"{path} is too long for the name of a socket")
        return path

    @property
    def _port(self) -> Path:
        return self.folder / f"{self.name}.port"

    @property
    def _pid(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def require(self) -> None:
        """Check that a socket can have such a name.

        Raises:
            OSError: It is too long.
        """
        if not self.by_port:
            _ = self._socket

    def listener(self) -> tuple[socket.socket, str]:
        """A socket that listens here, in the place of what a process that is gone left, and its secret.

        Raises:
            OSError: The folder takes no socket.
        """
        self.close()
        _write(self._pid, str(os.getpid()))
        if not self.by_port:
            made = socket.socket(socket.AF_UNIX)
            made.bind(str(self._socket))
            made.listen(BACKLOG)
            return made, ""
        made = socket.create_server((LOCAL_HOST, 0), backlog=BACKLOG)
        secret = secrets.token_hex(32)
        _write(self._port, json.dumps({"port": made.getsockname()[1], "secret": secret}))
        return made, secret

    def connected(self, seconds: float) -> tuple[socket.socket, str]:
        """A connection to the process that listens here, and its secret.

        Args:
            seconds: How long each answer may take.

        Raises:
            OSError: Nobody listens.
            Unanswered: What the folder says of it is unreadable.
        """
        if not self.by_port:
            made = socket.socket(socket.AF_UNIX)
            try:
                made.settimeout(seconds)
                made.connect(str(self._socket))
            except BaseException:
                made.close()
                raise
            return made, ""
        if not self.lock.is_held():
            raise ConnectionRefusedError("the port is another program's by now")
        try:
            told = json.loads(self._port.read_text(encoding="utf-8"))
            port, secret = int(told["port"]), str(told["secret"])
        except (ValueError, KeyError, TypeError) as error:
            raise Unanswered(str(error)) from error
        return socket.create_connection((LOCAL_HOST, port), timeout=seconds), secret

    def pid(self) -> int | None:
        """The process that holds the lock; None when nobody does."""
        try:
            return int(self._pid.read_text(encoding="utf-8")) if self.lock.is_held() else None
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Let nobody find a process here any more."""
        for path in (self.folder / f"{self.name}.socket", self._port, self._pid):
            with contextlib.suppress(OSError):
                path.unlink()


def _write(path: Path, text: str) -> None:
    """Make a file that only its owner can read.

    Raises:
        OSError: It cannot be made, or is there.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def tell(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a message.

    Raises:
        OSError: The other side is gone.
    """
    connection.sendall(json.dumps(message).encode() + b"\n")


class Messages:
    """The messages that come over a connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over the reading side."""
        self._file = connection.makefile("rb")

    def next(self) -> dict[str, Any]:
        """The next one.

        Raises:
            Unanswered: It does not come, or is none.
        """
        try:
            line = self._file.readline(MOST_BYTES)
            message = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError) as error:
            raise Unanswered(str(error)) from error
        if not isinstance(message, dict):
            raise Unanswered("the connection ended")
        return message

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self.next()
