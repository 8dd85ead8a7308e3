"""The database of a gradebook: where it is, how it is opened, and what is wrong with it in a sentence."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from grader.domain.errors import GraderError, UsageError
from grader.gradebook.tables import METADATA

FILE = "gradebook.sqlite"
VERSION = "0003"  # the newest of `migrations`
WAIT_SECONDS = 60  # for another writer to finish
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
        self._engine: Engine | None = None
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
            UsageError: The database cannot be used, or does not take it.
        """
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

    def _opened(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self.exists()
                if self._file is not None:
                    self._make_folder()
                engine = _engine(self._url)
                try:
                    self._update(engine)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{self._folder} cannot be written ({error.strerror}). Give another folder by --out."
            ) from None

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
                raise UsageError(
                    f"{self.name} was written by a newer grader (its tables have the version '{version}'). "
                    "Update this one."
                ) from None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except GraderError:
            raise
        except DBAPIError as error:
            cause = error.orig or error
            what = (" ".join(str(cause).split()) or type(cause).__name__)[:200].rstrip(".")
            raise UsageError(f"{self.name} cannot be used ({what}). {_remedy(what, self._file)}") from None


def _url(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        raise UsageError(
            "The gradebook's address is no URL of a database. Write it as in "
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


def _engine(url: URL) -> Engine:
    sqlite = url.get_backend_name() == "sqlite"
    try:
        engine = create_engine(url, connect_args={"timeout": WAIT_SECONDS} if sqlite else {})
    except ModuleNotFoundError as error:
        raise UsageError(
            f"A gradebook in PostgreSQL needs the package {error.name}, which is not installed. "
            "Run: pip install 'vit-grader[postgres]'"
        ) from None
    if sqlite:
        event.listen(engine, "connect", _prepare)
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


def _begin(connection: Connection) -> None:
    # A writer takes the lock first: a reader that turns into a writer could not wait for another one.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return version


def _remedy(what: str, file: Path | None) -> str:
    if file is None:
        return "Check the address, the password and that the database is running."
    if "not a database" in what or "malformed" in what:
        return "Put back a copy of it, or grade into another --out folder."
    if "locked" in what:
        return "Another command is writing to it: wait for its end and run this again."
    return "Make room, or give another folder by --out."
