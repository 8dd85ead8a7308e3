"""The file of links and the sessions that they become, as the console and the students' pages keep it.

A record of the file has a key, by which links are signed, and the address that was served last. The server
and commands beside it write the same file, one after the other. What a record holds besides, and what a link
opens, is for `access` and `student_web.student_links` to say.
"""

import contextlib
import hmac
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from grader.domain.errors import UsageError
from grader.files import atomic
from grader.files.folder_lock import locked_folder
from grader.files.stored_records import validator

Record = TypeVar("Record")


@dataclass
class RecordChange(Generic[Record]):
    """A record that is being changed."""

    record: Record


class LinkFile(Generic[Record]):
    """A file with a record, in a folder of its own within the results."""

    def __init__(
        self, out: Path, place: str, kind: type[Record], new: Callable[[str], Record], what: str
    ) -> None:
        """Nothing is read or written yet.

        Args:
            out: The folder of the results.
            place: The file below it.
            kind: The class of the record.
            new: Makes the first record from a key.
            what: What the file is, in words.
        """
        self._out, self._file = out, out / place
        self._kind, self._new, self._what = kind, new, what
        self._thread = threading.RLock()
        self._read: tuple[tuple[int, int], Record] | None = None

    def now(self) -> Record:
        """The record; it is read again only if the file is another one.

        Raises:
            UsageError: The file cannot be read or made.
        """
        with self._thread:
            try:
                stat = self._file.stat()
            except FileNotFoundError:
                with self.changed():
                    pass  # it is made, with a key
                stat = self._file.stat()
            version = (stat.st_mtime_ns, stat.st_ino)
            if self._read is None or self._read[0] != version:
                self._read = (version, self._content())
            return self._read[1]

    @contextlib.contextmanager
    def changed(self) -> Iterator[RecordChange[Record]]:
        """The record, to be changed by nobody else meanwhile; it is written if the block succeeds.

        Raises:
            UsageError: There is no such folder of results, or the file cannot be read or written.
        """
        if not self._out.is_dir():
            raise UsageError(
                f"{self._out}: there is no such folder. Give the --out folder of `grader grade`."
            )
        folder = self._file.parent
        atomic.make_folder(folder)
        with contextlib.suppress(OSError):
            folder.chmod(0o700)  # it holds the key of the links
        with self._thread, locked_folder(folder):
            is_there = self._file.exists()
            before = self._content() if is_there else self._new(secrets.token_hex(32))
            change = RecordChange(before)
            yield change
            if change.record is not before or not is_there:
                atomic.write(self._file, validator(self._kind).dump_json(change.record))
                with contextlib.suppress(OSError):
                    self._file.chmod(0o600)
            self._read = None

    def _content(self) -> Record:
        try:
            record: Record = validator(self._kind).validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            raise UsageError(
                f"{self._file} cannot be read as {self._what}. Remove it: all links and sessions end."
            ) from None
        return record


def keyed_digest(key: str, message: str) -> str:
    """HMAC-SHA-256, hexadecimal (RFC 2104)."""
    return hmac.new(key.encode(), message.encode("utf-8", "replace"), sha256).hexdigest()


def signed(key: str, purpose: str, name: str) -> str:
    """A link's token: its name, and the signature for a purpose."""
    return f"{name}.{_signature(key, purpose, name)}"


def name_in(key: str, purpose: str, token: str) -> str | None:
    """The name in a link's token; None if it was not signed with the key for the purpose."""
    name, _, signature = token.partition(".")
    wanted = _signature(key, purpose, name)
    return name if secrets.compare_digest(wanted.encode(), signature.encode("utf-8", "replace")) else None


def _signature(key: str, purpose: str, name: str) -> str:
    return keyed_digest(key, f"{purpose}\x1f{name}")


def secret_digest(secret: str) -> str:
    """SHA-256 of a session's secret, hexadecimal: what is kept of it."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
