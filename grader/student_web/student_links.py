"""Which student may come: links that expire and can be withdrawn, and the sessions that they become.

A link holds the signed name of an invitation, and no right by itself: whether it opens anything is looked up
each time. No student's id is in the file, only a keyed digest of it, so that the file says about nobody who
was forgotten that there was such a person. The key is not the console's.
"""

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from grader.domain.errors import UsageError
from grader.web.link_file import LinkFile, keyed_digest, name_in, secret_digest, signed

FOLDER = "student-links"  # within the results
_FILE = "links.json"
_PURPOSE = "grader link of a student"
_MOST_SESSIONS = 20  # of one link; then the oldest ends

LINK_LASTS = timedelta(days=30)
VISIT_LASTS = timedelta(days=7)


@dataclass(frozen=True)
class StudentLink:
    """A link of one student.

    Attributes:
        holder: The keyed digest of the student's id.
        ended: When it was withdrawn; None: it was not.
        opened: How often it was exchanged for a session.
        last_opened: When that was last; None: never.
    """

    id: str
    holder: str
    created: datetime
    expires: datetime
    ended: datetime | None = None
    opened: int = 0
    last_opened: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Whether it opens anything."""
        return self.ended is None and now < self.expires


@dataclass(frozen=True)
class StudentSession:
    """The session of a browser that came with a link. It ends with the link, at the latest.

    Attributes:
        digest: SHA-256 of its secret, hexadecimal.
        csrf: What every form of the session has to send.
        link: The id of the link.
    """

    digest: str
    csrf: str
    link: str
    holder: str
    expires: datetime


@dataclass(frozen=True)
class _LinkRecord:
    """The content of the file."""

    key: str
    address: str = ""
    links: tuple[StudentLink, ...] = ()
    sessions: tuple[StudentSession, ...] = ()


class StudentLinkRefused(UsageError):
    """A link opens nothing. Why, and whose it would be, is not told."""

    def __init__(self) -> None:
        super().__init__("This link opens nothing. Ask your teaching assistants for a new one.")


@dataclass
class StudentAccess:
    """The links and sessions of the students of a results folder.

    Attributes:
        out: The folder of the results.
        clock: The time, with its zone.
    """

    out: Path
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._file = LinkFile(
            self.out, f"{FOLDER}/{_FILE}", _LinkRecord, _LinkRecord, "the list of students' links"
        )

    # --- links ------------------------------------------------------------------------------------------

    def new_links(self, students: Collection[str], lasts: timedelta = LINK_LASTS) -> dict[str, str]:
        """Student -> the token of a new link, sorted. Earlier links stay as they are.

        Raises:
            UsageError: The file cannot be written.
        """
        now = self.clock()
        with self._file.changed() as change:
            record = change.record
            made = {
                student_id: StudentLink(
                    secrets.token_hex(12), _holder(record.key, student_id), now, now + lasts
                )
                for student_id in sorted(students)
            }
            kept = tuple(link for link in record.links if now < link.expires)
            change.record = replace(record, links=(*kept, *made.values()))
        return {student_id: signed(record.key, _PURPOSE, link.id) for student_id, link in made.items()}

    def withdraw(self, student_id: str) -> int:
        """End a student's links and sessions; returns how many links were open."""
        now = self.clock()
        with self._file.changed() as change:
            record = change.record
            holder = _holder(record.key, student_id)
            ended = [link for link in record.links if link.holder == holder and link.is_open(now)]
            change.record = replace(
                record,
                links=tuple(replace(link, ended=now) if link in ended else link for link in record.links),
                sessions=tuple(one for one in record.sessions if one.holder != holder),
            )
        return len(ended)

    def links_of(self, student_id: str) -> tuple[StudentLink, ...]:
        """A student's links that are open, oldest first."""
        now, record = self.clock(), self._file.now()
        holder = _holder(record.key, student_id)
        return tuple(link for link in record.links if link.holder == holder and link.is_open(now))

    # --- sessions ---------------------------------------------------------------------------------------

    def exchanged(self, token: str, students: Collection[str]) -> tuple[str, StudentSession]:
        """A session for a link's token: its secret, for the cookie, and what is known of it.

        Args:
            students: Those to whom something was released; a link of nobody else opens anything.

        Raises:
            StudentLinkRefused: The link opens nothing.
        """
        now = self.clock()
        link = self._link(token, now)
        if link is None or self.student_of(link.holder, students) is None:
            raise StudentLinkRefused  # without writing anything: guesses cost little
        with self._file.changed() as change:
            record = change.record
            current = next((one for one in record.links if one.id == link.id), None)
            if current is None or not current.is_open(now):
                raise StudentLinkRefused
            secret, expires = secrets.token_urlsafe(32), min(now + VISIT_LASTS, current.expires)
            session = StudentSession(
                secret_digest(secret), secrets.token_urlsafe(24), current.id, current.holder, expires
            )
            used = replace(current, opened=current.opened + 1, last_opened=now)
            lasting = [one for one in record.sessions if now < one.expires]
            change.record = replace(
                record,
                links=tuple(used if one.id == used.id else one for one in record.links),
                sessions=(*_without_oldest(lasting, current.id), session),
            )
        return secret, session

    def session(self, secret: str) -> StudentSession | None:
        """The session of a cookie's secret; None if there is none, or it or its link is over."""
        digest, now, record = secret_digest(secret), self.clock(), self._file.now()
        for session in record.sessions:
            if secrets.compare_digest(session.digest, digest):
                is_open = any(link.id == session.link and link.is_open(now) for link in record.links)
                return session if is_open and now < session.expires else None
        return None

    def student_of(self, holder: str, students: Collection[str]) -> str | None:
        """Whose link or session it is, among these students; None: nobody's of them."""
        key = self._file.now().key
        for student_id in students:
            if secrets.compare_digest(_holder(key, student_id), holder):
                return student_id
        return None

    def leave(self, secret: str) -> None:
        """End a session."""
        digest = secret_digest(secret)
        with self._file.changed() as change:
            sessions = tuple(one for one in change.record.sessions if one.digest != digest)
            change.record = replace(change.record, sessions=sessions)

    # --- address ----------------------------------------------------------------------------------------

    def note_address(self, address: str) -> None:
        """Note where the pages are served, for links that other commands make."""
        with self._file.changed() as change:
            change.record = replace(change.record, address=address)

    def address(self) -> str:
        """Where the pages are, or were last served; empty: never."""
        return self._file.now().address

    # --- file -------------------------------------------------------------------------------------------

    def _link(self, token: str, now: datetime) -> StudentLink | None:
        """The open link of a token."""
        record = self._file.now()
        name = name_in(record.key, _PURPOSE, token)
        return next((one for one in record.links if one.id == name and one.is_open(now)), None)


def _holder(key: str, student_id: str) -> str:
    """The keyed digest by which a student's links are found."""
    return keyed_digest(key, f"holder\x1f{student_id}")


def _without_oldest(sessions: Sequence[StudentSession], link: str) -> list[StudentSession]:
    """Sessions, with room for one more of a link."""
    of_link = [one for one in sessions if one.link == link]
    surplus = of_link[: max(0, len(of_link) + 1 - _MOST_SESSIONS)]
    return [one for one in sessions if one not in surplus]
