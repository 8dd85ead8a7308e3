"""Opens the database of a gradebook, and explains what is wrong with it.

A gradebook's file that may only be read is read without touching its folder. SQLite reads a file with a
write-ahead log through two more files beside it, which it creates if they are missing. If they exist,
somebody is using the gradebook or was killed: they are used as they are, and writers see the reader's
locks. A reader that cannot create them reads a copy taken while nobody wrote. This module never decides
what the gradebook holds: `statements` and `gradebook` do.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Table, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from grader.domain.errors import EngineError, GraderError, ReadOnlyBook, UsageError
from grader.files import atomic
from grader.files.mounts import network_file_system
from grader.gradebook.erasure import is_compacted, unguarded
from grader.gradebook.statements import BOOK

_LOG, _INDEX, _JOURNAL = "-wal", "-shm", "-journal"
_ATTEMPTS = 200
_SYNCHRONOUS = "FULL"  # each commit is on the disk before it returns
_SETTLED = 0.03  # seconds: within one tick of the file system's clock, two writes have the same time


def may_write(file: Path) -> bool:
    """Whether this process may write a gradebook's file, or create it if it does not exist yet."""
    if not file.exists():
        existing = next((folder for folder in file.parents if folder.exists()), file.parent)
        return os.access(existing, os.W_OK)
    parts = [_beside(file, ending) for ending in ("", _LOG, _INDEX)]
    # the files of the log are created and removed beside the file
    return all(os.access(path, os.W_OK) for path in (file.parent, *parts) if path.exists())


def shared_connection(file: Path, timeout: float) -> sqlite3.Connection | None:
    """A connection beside others that may write; None if SQLite would have to create files for it.

    Args:
        timeout: Seconds to wait for others.
    """
    if not all(os.access(_beside(file, ending), os.R_OK) for ending in (_LOG, _INDEX)):
        return None
    address = f"file:{quote(str(file.resolve()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=timeout, check_same_thread=False)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:  # the last user has just closed it, which removes these files
        connection.close()
        return None
    return connection


@dataclass(frozen=True)
class Copy:
    """A copy of a gradebook's file, in a folder of its own."""

    file: Path
    folder: "tempfile.TemporaryDirectory[str]"

    def close(self) -> None:
        """Remove it."""
        self.folder.cleanup()


def opened(file: Path, timeout: float) -> sqlite3.Connection | Copy:
    """A connection beside others that may write, or a copy of the current file.

    Args:
        timeout: Seconds to wait for others.

    Raises:
        UsageError: It cannot be read, there is no room for a copy, or somebody keeps writing.
    """
    for _ in range(_ATTEMPTS):
        connection_or_copy = shared_connection(file, timeout) or _copied(file)
        if connection_or_copy is not None:
            return connection_or_copy
        time.sleep(_SETTLED)
    raise UsageError(f"{file} may only be read here, and somebody keeps writing to it. Run this again.")


def _copied(file: Path) -> Copy | None:
    """A copy; None if somebody wrote just before, or while it was taken."""
    try:
        before = _file_stats(file)
        if abs(time.time() - max(changed for _, _, _, changed in before) / 1e9) < _SETTLED:
            return None
        folder = tempfile.TemporaryDirectory(prefix="grader-book-")
        copy = Copy(Path(folder.name) / file.name, folder)
        try:
            for ending, *_ in before:
                shutil.copyfile(_beside(file, ending), _beside(copy.file, ending))
            if _file_stats(file) == before:
                return copy
        except BaseException:
            copy.close()
            raise
        copy.close()
    except FileNotFoundError:  # the log, when its last user closes it
        return None
    except OSError as error:
        raise UsageError(_no_copy(file, error)) from None
    return None


def _file_stats(file: Path) -> list[tuple[str, int, int, int]]:
    """(ending, inode, size, time of the last change in ns) of each file of the gradebook."""
    parts = []
    for ending in ("", _LOG, _JOURNAL):
        try:
            stat = _beside(file, ending).stat()
        except FileNotFoundError:
            if not ending:
                raise
            continue
        parts.append((ending, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return parts


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def _no_copy(file: Path, error: OSError) -> str:
    return (
        f"{file} may only be read here, and reading it takes a copy of it in {tempfile.gettempdir()}, which "
        f"could not be made ({error.strerror}). Make room there, or name another folder with $TMPDIR."
    )


# --- database --------------------------------------------------------------------------------------------


FILE = "gradebook.sqlite"
VERSION = "0009"  # the newest of `migrations`
WAIT_SECONDS = 60  # for another writer to finish
_UPDATING = 0x67726164  # PostgreSQL: the key of the lock of whoever brings the tables up to date
_NO_RIGHT = ("42501", "25006")  # PostgreSQL: insufficient privilege, read-only transaction
_OUR_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


class Database:
    """A database with the gradebook's current tables, whatever version it had before.

    Args:
        folder: The results folder; the database is a file in it unless a URL is given.
        url: An SQLAlchemy URL, e.g. `postgresql://host/grades`; empty: the file.
    """

    def __init__(self, folder: Path, url: str = "") -> None:
        self._file = None if url else folder / FILE
        self._folder = folder
        self._url = _url(url) if url else URL.create("sqlite", database=str(folder / FILE))
        sqlite = self._url.get_backend_name() == "sqlite"
        self._path = Path(self._url.database or "") if sqlite else None
        self._engine: Engine | None = None
        self._copy: Copy | None = None
        self._lock = threading.Lock()
        self._shared = threading.local()  # the connection of `one_reading`

    @property
    def name(self) -> str:
        """Its name in messages, without a password."""
        return str(self._file or self._url.render_as_string(hide_password=True))

    def exists(self) -> bool:
        """Whether there is a gradebook to read.

        Raises:
            UsageError: The folder holds results of an older grader.
        """
        if self._file is None or self._file.exists():
            return True
        old = next(self._folder.glob("evidence/*/run-*.json"), None)
        if old is not None:
            raise UsageError(
                f"{self._folder} holds results of an older grader ({old.relative_to(self._folder)}), "
                "which this one does not read. Grade into another --out folder."
            )
        return False

    def require_writable(self) -> None:
        """Check that the gradebook can be written, as far as that is known beforehand.

        Raises:
            ReadOnlyBook: It may only be read.
        """
        if self._path is not None and not may_write(self._path):
            raise ReadOnlyBook(self._read_only_sentence())

    def require_local(self) -> None:
        """Check that a database in a file lies on a disk of this machine.

        Raises:
            UsageError: It lies on a network file system.
        """
        kind = network_file_system(self._path) if self._path is not None else ""
        if kind:
            raise UsageError(
                f"{self.name} lies on a network file system ({kind}), where SQLite may lose what several "
                "people write at once. Copy the results folder to a disk of this machine, or use "
                "--gradebook with a PostgreSQL URL."
            )

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the gradebook, whatever others write meanwhile.

        Within `one_reading`, it is the same for all in the thread.

        Raises:
            UsageError: The database cannot be used.
        """
        shared: Connection | None = getattr(self._shared, "connection", None)
        if shared is not None:
            yield shared
            return
        with self._explained_errors(), self._opened().connect() as connection:
            if self._url.get_backend_name() == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def one_reading(self) -> Iterator[None]:
        """All that this thread reads within the block is read at one moment, over one connection.

        Nothing is written within it: the thread would not see that.

        Raises:
            UsageError: The database cannot be used.
        """
        with self.reading() as connection:
            self._shared.connection = connection
            try:
                yield
            finally:
                self._shared.connection = None

    @contextlib.contextmanager
    def writing(self, tables: Sequence[Table] = BOOK) -> Iterator[Connection]:
        """A connection with the exclusive right to write; its changes are durable when the block succeeds.

        Args:
            tables: Those that are written: in PostgreSQL, others may write to all others meanwhile.

        Raises:
            ReadOnlyBook: It may only be read.
            EngineError: This thread is within `one_reading`.
            UsageError: The database cannot be used, or rejects the changes.
        """
        if getattr(self._shared, "connection", None) is not None:
            raise EngineError("Something was written during a reading. Report this to the grader's authors.")
        self.require_writable()
        with (
            self._explained_errors(),
            self._opened().connect() as connection,
            connection.execution_options(writes=True).begin(),
        ):
            if self._url.get_backend_name() == "postgresql":
                names = ", ".join(table.name for table in tables)
                connection.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))
            yield connection

    @contextlib.contextmanager
    def forgetting(self) -> Iterator[Connection]:
        """A connection like that of `writing`, in which rows may be changed and deleted.

        Raises:
            ReadOnlyBook: It may only be read.
            UsageError: The database cannot be used, or rejects the changes.
        """
        with self.writing() as connection, unguarded(connection):
            yield connection

    def compact(self) -> None:
        """Write the whole database again without what was deleted, and empty SQLite's write-ahead log.

        Raises:
            UsageError: The database cannot be used, or somebody else has it open.
        """
        with self._explained_errors(), self._opened().connect() as connection:
            if not is_compacted(connection):
                raise UsageError(
                    f"{self.name} is open in another program, so its log could not be emptied. End that, and "
                    "run this again."
                )

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None
            if self._copy is not None:
                self._copy.close()
                self._copy = None

    def _opened(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self.exists()
                if self._path is not None and self._path.exists() and not may_write(self._path):
                    self._engine = self._for_reading(self._path)
                    return self._engine
                if self._file is not None:
                    atomic.make_folder(self._folder, remedy="Give another folder with --out.")
                engine = _engine(self._url)
                try:
                    self._update(engine)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def _for_reading(self, path: Path) -> Engine:
        """The engine for a file that may only be read."""
        connection_or_copy = opened(path, WAIT_SECONDS)
        if isinstance(connection_or_copy, Copy):
            self._copy = connection_or_copy
            engine = _engine(self._url.set(database=str(connection_or_copy.file)))
        else:
            engine = _engine(self._url, only_read=path)
        try:
            with engine.connect() as connection:
                version = _version(connection)
            if not isinstance(connection_or_copy, Copy):
                connection_or_copy.close()  # not earlier: closing the last connection removes the log
            if version != VERSION:
                raise _newer(self.name, version) if (version or "") > VERSION else _older(self.name)
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _update(self, engine: Engine) -> None:
        """Bring the tables up to date, in one transaction."""
        with engine.connect() as connection:
            version = _version(connection)
        if version == VERSION:
            return
        # imported only now: importing Alembic takes longer than reading the gradebook
        from alembic import command
        from alembic.config import Config
        from alembic.util.exc import CommandError

        config = Config()
        config.set_main_option("script_location", "grader.gradebook:migrations")
        config.set_main_option("path_separator", "os")
        with engine.connect() as connection, connection.execution_options(writes=True).begin():
            if self._url.get_backend_name() == "postgresql":  # others may do the same at this moment
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPDATING})
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError:
                raise _newer(self.name, version) from None

    @contextlib.contextmanager
    def _explained_errors(self) -> Iterator[None]:
        try:
            yield
        except GraderError:
            raise
        except DBAPIError as error:
            cause = error.orig or error
            code = _sqlite_code(cause)
            if getattr(cause, "sqlstate", None) in _NO_RIGHT or code == sqlite3.SQLITE_READONLY:
                raise ReadOnlyBook(self._read_only_sentence()) from None
            what = (" ".join(str(cause).split()) or type(cause).__name__)[:200].rstrip(".")
            raise UsageError(f"{self.name} cannot be used ({what}). {_remedy(code, self._file)}") from None

    def _read_only_sentence(self) -> str:
        where = "" if self._path is None else f", or on a copy of {self._path.parent}"
        return (
            f"{self.name} may only be read here, so nothing was kept in it. "
            f"Run this as somebody who may write to it{where}."
        )


def _newer(name: str, version: str | None) -> UsageError:
    return UsageError(
        f"{name} was written by a newer grader (its tables have the version '{version}'). Update this one."
    )


def _older(name: str) -> UsageError:
    return UsageError(
        f"{name} was written by an older grader and may only be read here, so its tables cannot be brought "
        "up to date. Run this once as somebody who may write to it, or on a copy of its folder."
    )


def _url(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        raise UsageError(
            "The gradebook's address is not a URL of a database. Write it as in "
            "postgresql://user:password@host/name or sqlite:////path/to/file.sqlite."
        ) from None
    url = url.set(drivername=_OUR_DRIVERS.get(url.drivername, url.drivername))
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(
            f"The gradebook cannot be kept in '{url.drivername}'. "
            "Use PostgreSQL (postgresql://...) or SQLite."
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise UsageError("The gradebook needs a file. Write it as in sqlite:////path/to/file.sqlite.")
    return url


def _engine(url: URL, *, only_read: Path | None = None) -> Engine:
    """The engine of a database.

    Args:
        only_read: The file, if nothing may be created or changed beside it.
    """
    sqlite = url.get_backend_name() == "sqlite"
    options: dict[str, Any] = {"connect_args": {"timeout": WAIT_SECONDS}} if sqlite else {}
    if only_read is not None:
        options = {"creator": lambda: _beside_others(only_read)}
    try:
        engine = create_engine(url, **options)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"A gradebook in PostgreSQL needs the package {error.name}, which is not installed. "
            "Run: pip install 'vit-grader[postgres]'"
        ) from None
    if sqlite:
        event.listen(engine, "connect", _prepare if only_read is None else _prepare_reading)
        event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _record: Any) -> None:
    # the driver would begin transactions too late for a consistent view: `_begin` does it instead
    connection.isolation_level = None
    # With a write-ahead log, readers and the writer do not block each other, and the gradebook survives any
    # kill. The mode is stored in the file, and setting it again would need exclusive access.
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
    connection.execute("PRAGMA foreign_keys = ON")


def _beside_others(path: Path) -> sqlite3.Connection:
    connection = shared_connection(path, WAIT_SECONDS)
    if connection is None:
        raise UsageError(f"{path} was closed by whoever worked with it. Run this again.")
    return connection


def _prepare_reading(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    # a writer takes the lock at the start: a reader that becomes a writer could not wait for another one
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return version


def _sqlite_code(error: BaseException) -> int | None:
    """SQLite's primary code of the error; None if it is not an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _remedy(code: int | None, file: Path | None) -> str:
    if file is None:
        return "Check the address, the password and that the database is running."
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return "Put back a copy of it, or grade into another --out folder."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "Another command is writing to it: wait for its end and run this again."
    if code == sqlite3.SQLITE_FULL:
        return "Make room there."
    return "Does its folder exist, and may you read what is in it?"
