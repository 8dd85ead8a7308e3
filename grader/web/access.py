"""Who may open the console: people with roles, their links, and their sessions.

A link holds a signed name of an invitation, never a right by itself: whether it opens anything is looked up
each time, so that it can be withdrawn. It is exchanged for a session, whose secret stands in a cookie only;
the file holds its digest. The server and commands beside it write the same file, one after the other.
"""

import contextlib
import hmac
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.files import atomic
from grader.files.stored_records import validator

FOLDER = "console"  # within the results
_FILE, _LOCK = "access.json", "access.lock"
_PURPOSE = "grader console invitation"
_LONGEST_NAME = 80  # characters

FIRST_LINK_LASTS = timedelta(minutes=15)
INVITATION_LASTS = timedelta(days=14)
SESSION_LASTS = timedelta(days=7)


class StaffRole(StrEnum):
    """What a person may do in the console; each may also do what those before it may."""

    MARKER = "marker"
    HEAD = "head"
    INSTRUCTOR = "instructor"

    def includes(self, other: "StaffRole") -> bool:
        """Whether whoever has this role may do what the other role may."""
        order = list(StaffRole)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class Invitation:
    """A link for one person.

    Attributes:
        once: Whether the first exchange uses it up.
        ended: When it was withdrawn or used up.
    """

    id: str
    person: str
    role: StaffRole
    created: datetime
    expires: datetime
    once: bool = False
    ended: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Whether it can be exchanged."""
        return self.ended is None and now < self.expires


@dataclass(frozen=True)
class StaffSession:
    """A person's session.

    Attributes:
        digest: SHA-256 of its secret, hexadecimal.
        csrf: What every form of the session has to send.
        invitation: From which it came.
    """

    digest: str
    csrf: str
    invitation: str
    person: str
    role: StaffRole
    expires: datetime


@dataclass(frozen=True)
class _Record:
    """The content of the file."""

    key: str
    address: str = ""
    invitations: tuple[Invitation, ...] = ()
    sessions: tuple[StaffSession, ...] = ()


class LinkRefused(UsageError):
    """A link opens nothing: it is not one of ours, or it was used, withdrawn, or has expired."""

    def __init__(self) -> None:
        super().__init__(
            "This link opens nothing: it was used, withdrawn, has expired, or is incomplete. Ask for another."
        )


@dataclass
class Access:
    """The people of a results folder's console.

    Attributes:
        out: The folder of the results.
        clock: The time, with its zone.
    """

    out: Path
    clock: Callable[[], datetime]
    _thread: threading.RLock = field(default_factory=threading.RLock)
    _read: tuple[tuple[int, int], _Record] | None = None

    # --- people -----------------------------------------------------------------------------------------

    def invite(
        self,
        person: str,
        role: StaffRole,
        *,
        lasts: timedelta = INVITATION_LASTS,
        once: bool = False,
    ) -> str:
        """A link's token for a person. Earlier links of the person stay as they are.

        Raises:
            UsageError: The name is empty or too long, or the file cannot be written.
        """
        name = person_name(person)
        now = self.clock()
        invitation = Invitation(secrets.token_hex(12), name, role, now, now + lasts, once)
        with self._changed() as change:
            record = change.record
            change.record = replace(record, invitations=(*record.invitations, invitation))
        return f"{invitation.id}.{_signature(record.key, invitation.id)}"

    def withdraw(self, person: str) -> int:
        """End a person's links and sessions.

        Returns:
            How many links it ended.

        Raises:
            UsageError: Nobody of this name was invited.
        """
        now = self.clock()
        with self._changed() as change:
            record = change.record
            names = sorted({invitation.person for invitation in record.invitations})
            if person not in names:
                known = f"There are {', '.join(names)}." if names else "Nobody was."
                raise UsageError(f"Nobody called '{printable(person)}' was invited. {known}")
            ended = [
                invitation
                for invitation in record.invitations
                if invitation.person == person and invitation.is_open(now)
            ]
            change.record = replace(
                record,
                invitations=tuple(
                    replace(invitation, ended=now) if invitation in ended else invitation
                    for invitation in record.invitations
                ),
                sessions=tuple(session for session in record.sessions if session.person != person),
            )
        return len(ended)

    def people(self) -> tuple[Invitation, ...]:
        """All invitations that are open, oldest first."""
        now = self.clock()
        return tuple(invitation for invitation in self._now().invitations if invitation.is_open(now))

    def role_of(self, person: str) -> StaffRole | None:
        """The role of an invited person, for a proxy that has made sure who it is; None: not invited."""
        roles = [invitation.role for invitation in self.people() if invitation.person == person]
        return roles[-1] if roles else None

    # --- sessions ---------------------------------------------------------------------------------------

    def exchanged(self, token: str) -> tuple[str, StaffSession]:
        """A session for a link's token: its secret, for the cookie, and what is known of it.

        Raises:
            LinkRefused: The link opens nothing.
        """
        now = self.clock()
        with self._changed() as change:
            record = change.record
            name, _, signature = token.partition(".")
            if not secrets.compare_digest(_signature(record.key, name).encode(), signature.encode()):
                raise LinkRefused
            invitation = next((one for one in record.invitations if one.id == name), None)
            if invitation is None or not invitation.is_open(now):
                raise LinkRefused
            secret, expires = secrets.token_urlsafe(32), now + SESSION_LASTS
            if not invitation.once:
                expires = min(expires, invitation.expires)
            session = StaffSession(
                _digest(secret),
                secrets.token_urlsafe(24),
                invitation.id,
                invitation.person,
                invitation.role,
                expires,
            )
            used = replace(invitation, ended=now) if invitation.once else invitation
            change.record = replace(
                record,
                invitations=tuple(used if one.id == used.id else one for one in record.invitations),
                sessions=(*(one for one in record.sessions if now < one.expires), session),
            )
        return secret, session

    def session(self, secret: str) -> StaffSession | None:
        """The session of a cookie's secret; None if there is none, or it is over."""
        digest, now = _digest(secret), self.clock()
        for session in self._now().sessions:
            if secrets.compare_digest(session.digest, digest):
                return session if now < session.expires else None
        return None

    def proxied(self, person: str) -> StaffSession | None:
        """The session of a person of whom a trusted proxy has made sure; None if nobody invited them."""
        role = self.role_of(person)
        if role is None:
            return None
        key = self._now().key
        csrf = sha256(f"{key}\x1fcsrf\x1f{person}".encode()).hexdigest()
        return StaffSession("", csrf, "", person, role, self.clock() + SESSION_LASTS)

    def leave(self, secret: str) -> None:
        """End a session."""
        digest = _digest(secret)
        with self._changed() as change:
            sessions = tuple(one for one in change.record.sessions if one.digest != digest)
            change.record = replace(change.record, sessions=sessions)

    # --- address ----------------------------------------------------------------------------------------

    def note_address(self, address: str) -> None:
        """Note where the console is served, for links that other commands make."""
        with self._changed() as change:
            change.record = replace(change.record, address=address)

    def address(self) -> str:
        """Where the console is, or was last served; empty: never."""
        return self._now().address

    # --- file -------------------------------------------------------------------------------------------

    def _now(self) -> _Record:
        """The record; it is read again only if the file is another one."""
        file = self.out / FOLDER / _FILE
        with self._thread:
            try:
                stat = file.stat()
            except FileNotFoundError:
                with self._changed():
                    pass  # it is made, with a key
                stat = file.stat()
            version = (stat.st_mtime_ns, stat.st_ino)
            if self._read is None or self._read[0] != version:
                self._read = (version, _record_in(file))
            return self._read[1]

    @contextlib.contextmanager
    def _changed(self) -> Iterator["_Change"]:
        """The record, to be changed by nobody else meanwhile; it is written if the block succeeds."""
        folder = self.out / FOLDER
        if not self.out.is_dir():
            raise UsageError(f"{self.out}: there is no such folder. Give the --out folder of `grader grade`.")
        atomic.make_folder(folder)
        with contextlib.suppress(OSError):
            folder.chmod(0o700)  # it holds the key of the links
        file = folder / _FILE
        with self._thread, _locked(folder / _LOCK):
            before = _record_in(file) if file.exists() else _Record(secrets.token_hex(32))
            change = _Change(before)
            yield change
            if change.record is not before or not file.exists():
                atomic.write(file, validator(_Record).dump_json(change.record))
                with contextlib.suppress(OSError):
                    file.chmod(0o600)
            self._read = None


@dataclass
class _Change:
    """A record that is being changed."""

    record: _Record


def person_name(text: str) -> str:
    """A person's name as it is recorded.

    Raises:
        UsageError: It is empty or too long.
    """
    name = " ".join(printable(text).split())
    if not name or len(name) > _LONGEST_NAME:
        raise UsageError(f"A name has from 1 to {_LONGEST_NAME} characters: give one, as `--invite ta1`.")
    return name


def _signature(key: str, name: str) -> str:
    """HMAC-SHA-256 of an invitation's name, hexadecimal (RFC 2104)."""
    message = f"{_PURPOSE}\x1f{name}".encode("utf-8", "replace")
    return hmac.new(key.encode(), message, sha256).hexdigest()


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _record_in(file: Path) -> _Record:
    try:
        record: _Record = validator(_Record).validate_json(file.read_bytes())
    except (OSError, ValidationError):
        raise UsageError(
            f"{file} cannot be read as the console's list of people. Remove it: all links and sessions end."
        ) from None
    return record


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold a lock file against other processes, where the system has such locks."""
    try:
        import fcntl
    except ImportError:  # Windows: one process at a time is all there is
        yield
        return
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
