"""Who may open the console: people with roles, their links, and their sessions.

A link holds a signed name of an invitation, never a right by itself: whether it opens anything is looked up
each time, so that it can be withdrawn. It is exchanged for a session, whose secret stands in a cookie only;
the file holds its digest.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.web.link_file import LinkFile, name_in, secret_digest, signed

FOLDER = "console"  # within the results
_FILE = "access.json"
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

    def __post_init__(self) -> None:
        self._file = LinkFile(self.out, f"{FOLDER}/{_FILE}", _Record, _Record, "the console's list of people")

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
        with self._file.changed() as change:
            record = change.record
            change.record = replace(record, invitations=(*record.invitations, invitation))
        return signed(record.key, _PURPOSE, invitation.id)

    def withdraw(self, person: str) -> int:
        """End a person's links and sessions.

        Returns:
            How many links it ended.

        Raises:
            UsageError: Nobody of this name was invited.
        """
        now = self.clock()
        with self._file.changed() as change:
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
        return tuple(invitation for invitation in self._file.now().invitations if invitation.is_open(now))

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
        with self._file.changed() as change:
            record = change.record
            name = name_in(record.key, _PURPOSE, token)
            invitation = next((one for one in record.invitations if one.id == name), None)
            if invitation is None or not invitation.is_open(now):
                raise LinkRefused
            secret, expires = secrets.token_urlsafe(32), now + SESSION_LASTS
            if not invitation.once:
                expires = min(expires, invitation.expires)
            session = StaffSession(
                secret_digest(secret),
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
        digest, now = secret_digest(secret), self.clock()
        for session in self._file.now().sessions:
            if secrets.compare_digest(session.digest, digest):
                return session if now < session.expires else None
        return None

    def proxied(self, person: str) -> StaffSession | None:
        """The session of a person of whom a trusted proxy has made sure; None if nobody invited them."""
        role = self.role_of(person)
        if role is None:
            return None
        key = self._file.now().key
        csrf = sha256(f"{key}\x1fcsrf\x1f{person}".encode()).hexdigest()
        return StaffSession("", csrf, "", person, role, self.clock() + SESSION_LASTS)

    def leave(self, secret: str) -> None:
        """End a session."""
        digest = secret_digest(secret)
        with self._file.changed() as change:
            sessions = tuple(one for one in change.record.sessions if one.digest != digest)
            change.record = replace(change.record, sessions=sessions)

    # --- address ----------------------------------------------------------------------------------------

    def note_address(self, address: str) -> None:
        """Note where the console is served, for links that other commands make."""
        with self._file.changed() as change:
            change.record = replace(change.record, address=address)

    def address(self) -> str:
        """Where the console is, or was last served; empty: never."""
        return self._file.now().address


def person_name(text: str) -> str:
    """A person's name as it is recorded.

    Raises:
        UsageError: It is empty or too long.
    """
    name = " ".join(printable(text).split())
    if not name or len(name) > _LONGEST_NAME:
        raise UsageError(f"A name has from 1 to {_LONGEST_NAME} characters: give one, as `--invite ta1`.")
    return name
