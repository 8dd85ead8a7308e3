"""The database of a gradebook: where it is, how it is opened, and what is wrong with it.

A gradebook's file that may only be read is read without touching its folder. SQLite reads a file with a
write-ahead log by two more files beside it, which it makes where they are not. Where they are there,
somebody works with the book or was killed: they are used as they are, and whoever writes sees the
reader's locks. Where a reader can make none, it reads a copy of a moment in which nobody wrote. It never
decides what stands in the book: `statements` and `gradebook` do.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from grader.domain.errors import GraderError, ReadOnlyBook, UsageError
from grader.files import atomic
from grader.gradebook.statements import METADATA

_LOG, _INDEX, _JOURNAL = "-wal", "-shm", "-journal"
_ATTEMPTS = 200
_SETTLED = 0.03  # seconds; within a tick of the file system's clock two writes have the same time


def may_write(file: Path) -> bool:
    """Whether a book's file can be written by whoever runs this, or made where it is not there yet."""
    if not file.exists():
        there = next((folder for folder in file.parents if folder.exists()), file.parent)
        return os.access(there, os.W_OK)
    parts = [_beside(file, ending) for ending in ("", _LOG, _INDEX)]
    # what belongs to the log is made and removed beside the file
    return all(os.access(path, os.W_OK) for path in (file.parent, *parts) if path.exists())


def shared(file: Path, timeout: float) -> sqlite3.Connection | None:
    """A connection beside others who may write; None where SQLite would have to make files for that.

    Args:
        timeout: Seconds to wait for others.
    """
    if not all(os.access(_beside(file, ending), os.R_OK) for ending in (_LOG, _INDEX)):
        return None
    address = f"file:{quote(str(file.resolve()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=timeout, check_same_thread=False)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:  # whoever worked with it has just left, and took the files along
        connection.close()
        return None
    return connection


@dataclass(frozen=True)
class Copy:
    """A copy of a book's file, in a folder of its own."""

    file: Path
    folder: "tempfile.TemporaryDirectory[str]"

    def close(self) -> None:
        """Remove it."""
        self.folder.cleanup()


def opened(file: Path, timeout: float) -> sqlite3.Connection | Copy:
    """A connection beside others who may write, or a copy of the file as it is now.

    Args:
        timeout: Seconds to wait for others.

    Raises:
        UsageError: It cannot be read, or there is no room for a copy, or somebody writes all the time.
    """
    for _ in range(_ATTEMPTS):
        found = shared(file, timeout) or _copied(file)
        if found is not None:
            return found
        time.sleep(_SETTLED)
    raise UsageError(f"{file} may only be read here, and somebody writes to it all the time. Run this again.")


def _copied(file: Path) -> Copy | None:
    """A copy; None where somebody wrote just now, or while it was taken."""
    try:
        before = _parts(file)
        if abs(time.time() - max(changed for _, _, _, changed in before) / 1e9) < _SETTLED:
            return None
        folder = tempfile.TemporaryDirectory(prefix="grader-book-")
        copy = Copy(Path(folder.name) / file.name, folder)
        try:
            for ending, *_ in before:
                shutil.copyfile(_beside(file, ending), _beside(copy.file, ending))
            if _parts(file) == before:
                return copy
        except BaseException:
            copy.close()
            raise
        copy.close()
    except FileNotFoundError:  # the log, as somebody leaves
        return None
    except OSError as error:
        raise UsageError(_no_copy(file, error)) from None
    return None


def _parts(file: Path) -> list[tuple[str, int, int, int]]:
    """(ending, inode, size, time of the last change in ns) of what the book consists of."""
    found = []
    for ending in ("", _LOG, _JOURNAL):
        try:
            stat = _beside(file, ending).stat()
        except FileNotFoundError:
            if not ending:
                raise
            continue
        found.append((ending, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def _no_copy(file: Path, error: OSError) -> str:
    return (
        f"{file} may only be read here, and reading it takes a copy of it in {tempfile.gettempdir()}, which "
        f"could not be made ({error.strerror}). Make room there, or name another folder by $TMPDIR."
    )


# --- database --------------------------------------------------------------------------------------------


FILE = "gradebook.sqlite"
VERSION = "0005"  # the newest of `migrations`
WAIT_SECONDS = 60  # for another writer to finish
_NO_RIGHT = ("42501", "25006")  # PostgreSQL: insufficient privilege, read-only transaction
_OUR_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


class Database:
    """A database that has the gradebook's tables, whatever version it had before.

    Args:
        folder: The results folder; the database is a file in it unless there is a URL.
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

    @property
    def name(self) -> str:
        """What messages call it; without a password."""
        return str(self._file or self._url.render_as_string(hide_password=True))

    def exists(self) -> bool:
        """Whether there is a book to read.

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
        """Raises where it is known that nothing can be kept in the book.

        Raises:
            ReadOnlyBook: It may only be read.
        """
        if self._path is not None and not may_write(self._path):
            raise ReadOnlyBook(self._read_only_sentence())

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the book, whatever others write meanwhile.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._told(), self._opened().connect() as connection:
            if self._url.get_backend_name() == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection that alone may write; what it wrote is kept, durably, when the block ends whole.

        Raises:
            ReadOnlyBook: It may only be read.
            UsageError: The database cannot be used, or does not take it.
        """
        self.require_writable()
        with (
            self._told(),
            self._opened().connect() as connection,
            connection.execution_options(writes=True).begin(),
        ):
            if self._url.get_backend_name() == "postgresql":
                names = ", ".join(METADATA.tables)
                connection.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))
            yield connection

    def close(self) -> None:
        """Let go of the database."""
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
                    atomic.make_folder(self._folder, remedy="Give another folder by --out.")
                engine = _engine(self._url)
                try:
                    self._update(engine)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def _for_reading(self, path: Path) -> Engine:
        """The file as it is, where it may only be read."""
        found = opened(path, WAIT_SECONDS)
        if isinstance(found, Copy):
            self._copy = found
            engine = _engine(self._url.set(database=str(found.file)))
        else:
            engine = _engine(self._url, only_read=path)
        try:
            with engine.connect() as connection:
                version = _version(connection)
            if not isinstance(found, Copy):
                found.close()  # not before: whoever leaves last takes the log along
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
        # only now: importing Alembic takes longer than reading the book
        from alembic import command
        from alembic.config import Config
        from alembic.util.exc import CommandError

        config = Config()
        config.set_main_option("script_location", "grader.gradebook:migrations")
        config.set_main_option("path_separator", "os")
        with engine.connect() as connection, connection.execution_options(writes=True).begin():
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError:
                raise _newer(self.name, version) from None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
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
        only_read: The file, where nothing is to be made or changed beside it.
    """
    sqlite = url.get_backend_name() == "sqlite"
    more: dict[str, Any] = {"connect_args": {"timeout": WAIT_SECONDS}} if sqlite else {}
    if only_read is not None:
        more = {"creator": lambda: _beside_others(only_read)}
    try:
        engine = create_engine(url, **more)
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
    # The driver would begin transactions by itself, too late for a consistent view: `_begin` does.
    connection.isolation_level = None
    # A write-ahead log keeps readers and the writer apart, and the book whole whatever is killed; each commit
    # is on the disk before it returns. The mode stays with the file: setting it again needs the file alone.
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _beside_others(path: Path) -> sqlite3.Connection:
    connection = shared(path, WAIT_SECONDS)
    if connection is None:
        raise UsageError(f"{path} was closed by whoever worked with it. Run this again.")
    return connection


def _prepare_reading(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    # A writer takes the lock first: a reader that turns into a writer could not wait for another one.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return version


def _sqlite_code(error: BaseException) -> int | None:
    """What SQLite calls the error (its primary code); None where it is none of SQLite's."""
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
