"""Where a warm process is found and asked: the user's private folder, a fingerprint, and a socket.

It makes the folder that nobody else can look into, and its locks. A fingerprint covers what must not have
changed for a warm process to be used (grader, Python, libraries, assignment, environment). Messages are
lines of JSON over the socket. It imports only the standard library. It decides neither what is asked nor
when a process is started.
"""

import contextlib
import hashlib
import json
import os
import secrets
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import grader
from grader import __version__
from grader.domain.errors import Interruption
from grader.files.known_folders import cache_folder, public_checks, runtime_folder

OWN = 0o700
NAME = "warm"
LOCK = ".lock"


def private_folder() -> Path:
    """The folder, made where there is none.

    Raises:
        OSError: It cannot be made, or what is there cannot be trusted.
    """
    above = _folder_above()
    above.mkdir(parents=True, exist_ok=True)
    return checked_folder(above / NAME)


def checked_folder(folder: Path) -> Path:
    """The folder, made where there is none, if it is the user's own and closed to others.

    Raises:
        OSError: It cannot be made.
        PermissionError: It is a link or a file, belongs to somebody else, or is open to others.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=OWN)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f"{folder} is not a folder")
    # Windows has no such modes; there the user's profile is closed to others
    if sys.platform != "win32" and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != OWN):
        raise PermissionError(f"{folder} is not the user's alone")
    return folder


def _folder_above() -> Path:
    """The parent of the folder: the system's folder for sockets, else the cache.

    Raises:
        OSError: The user has neither.
    """
    try:
        runtime = runtime_folder()
        return runtime if runtime.parent.is_dir() else cache_folder()
    except RuntimeError as error:  # no home
        raise FileNotFoundError(str(error)) from error


def names_in(folder: Path) -> Iterator[str]:
    """The names of the warm processes that were ever started in a folder."""
    for path in sorted(folder.glob(f"*{LOCK}")):
        yield path.name.removesuffix(LOCK)


class Lock:
    """A lock that one process holds until it ends, however it ends."""

    def __init__(self, path: Path) -> None:
        """Make a lock that is not held yet.

        Args:
            path: Its file, which stays.
        """
        self._path = path
        self._file: BinaryIO | None = None

    def taken(self) -> bool:
        """Take it; False when another process has it.

        Raises:
            OSError: There is no room, or the file system has no locks.
        """
        file = self._path.open("ab")
        try:
            _lock(file)
        except BlockingIOError:
            file.close()
            return False
        except BaseException:
            file.close()
            raise
        self._file = file
        return True

    def is_held(self) -> bool:
        """Whether another process has it now.

        Raises:
            OSError: As for `taken`.
        """
        if not self._path.exists():
            return False
        with self:
            return not self.taken()

    def release(self) -> None:
        """Release it for this process; forks that have the file open still hold it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "Lock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


if sys.platform == "win32":
    import msvcrt

    def _lock(file: BinaryIO) -> None:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from error

else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


# --- fingerprint -----------------------------------------------------------------------------------------


# the files of an assignment that are read or executed for a check, beside the homework and public checks
ASSIGNMENT_FILES = ("assignment.toml", "conftest.py", "variant.json")
# prefixes of the variables that Python and the libraries read while they are loaded
READ_ON_LOADING = (
    *("PYTHON", "PYTEST", "VIRTUAL_ENV", "CONDA", "LD_", "DYLD_", "LANG", "LC_", "TZ", "GLIBC_", "MALLOC_"),
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLAS_", "VECLIB_", "NUMEXPR_", "NUMBA_", "NPY_"),
    *("TORCH", "PYTORCH_", "ATEN_", "CUDA", "CUDNN_", "CUBLAS_", "NVIDIA_", "NCCL_", "HIP_", "ROCR_", "HSA_"),
    *("MPL", "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "TQDM_", "KERAS_", "TF_", "JAX_", "XLA_"),
    *("HOME", "USERPROFILE", "XDG_", "TMP", "TEMP", "GRADER_"),
)
OURS_ALONE = ("GRADER_WARM",)  # it decides whether there is a warm process, not what one finds


def fingerprint(folder: Path, environment: Mapping[str, str]) -> str:
    """A digest of the installed grader, the Python, the assignment and what matters of the environment.

    Args:
        folder: The assignment's, as students have it.
        environment: Of the asking process; the rest of it is handed over with each check.
    """
    facts = {
        "grader": [__version__, *_modules(Path(grader.__file__).parent)],
        "python": [sys.version, sys.executable, sys.prefix],
        "libraries": _libraries(),
        "assignment": [
            str(folder.resolve()),
            *(_digest(folder / name) for name in ASSIGNMENT_FILES),
            *([path.name, _digest(path)] for path in public_checks(folder)),
        ],
        "environment": sorted(what_matters(environment).items()),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def what_matters(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are read while Python and the libraries are loaded, and never again."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper().startswith(READ_ON_LOADING) and name not in OURS_ALONE
    }


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _modules(folder: Path) -> Iterator[str]:
    """The modules in a folder, each with its time of modification, since a wheel may be reinstalled."""
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
            yield from _modules(Path(entry.path))
        elif entry.name.endswith(".py"):
            about = entry.stat()
            yield f"{entry.path} {about.st_size} {about.st_mtime_ns}"


def _libraries() -> list[str]:
    """The folders of installed packages, each with the time at which a package was last added or removed."""
    folders = []
    for entry in sys.path:
        if Path(entry).name in ("site-packages", "dist-packages"):
            try:
                folders.append(f"{entry} {Path(entry).stat().st_mtime_ns}")
            except OSError:
                continue
    return sorted(set(folders))


# --- address ---------------------------------------------------------------------------------------------


MOST_BYTES = 64_000_000  # of one line: a program with its source has some 100 kB
LONGEST_PATH = 100  # bytes that every system takes as a socket's name
BACKLOG = 16
LOCAL_HOST = "127.0.0.1"
HAS_LOCAL_SOCKETS = hasattr(socket, "AF_UNIX")


class Unanswered(Interruption):
    """A warm process does not answer, or not completely."""


@dataclass(frozen=True)
class WarmAddress:
    """A place where at most one warm process listens.

    Attributes:
        folder: The user's private folder.
        name: What its files are called, without their suffixes.
        by_port: It listens at a port of this machine, since Python has no local sockets on this system. It
            then asks for a secret that is in a file of the folder.
    """

    folder: Path
    name: str
    by_port: bool = not HAS_LOCAL_SOCKETS

    @property
    def lock(self) -> Lock:
        """The lock that the process which may listen here holds."""
        return Lock(self.folder / f"{self.name}{LOCK}")

    @property
    def workers(self) -> Path:
        """The folder of the process that forks its workers."""
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
        """Check that a socket can have this name.

        Raises:
            OSError: It is too long.
        """
        if not self.by_port:
            _ = self._socket

    def listener(self) -> tuple[socket.socket, str]:
        """A socket that listens here, and its secret; it replaces what an ended process left.

        Raises:
            OSError: No socket can be made in the folder.
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
            OSError: Nothing listens.
            Unanswered: The file with the port cannot be read.
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
            written = json.loads(self._port.read_text(encoding="utf-8"))
            port, secret = int(written["port"]), str(written["secret"])
        except (ValueError, KeyError, TypeError) as error:
            raise Unanswered(str(error)) from error
        return socket.create_connection((LOCAL_HOST, port), timeout=seconds), secret

    def pid(self) -> int | None:
        """The process that holds the lock; None when none does."""
        try:
            return int(self._pid.read_text(encoding="utf-8")) if self.lock.is_held() else None
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Remove the files by which a process is found here."""
        for path in (self.folder / f"{self.name}.socket", self._port, self._pid):
            with contextlib.suppress(OSError):
                path.unlink()


def _write(path: Path, text: str) -> None:
    """Make a file that only its owner can read.

    Raises:
        OSError: It cannot be made, or exists already.
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
        """The next message.

        Raises:
            Unanswered: None comes, or what comes is not a message.
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
