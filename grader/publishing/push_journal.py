"""Remembers what was sent to an LMS: one line for each intention, and one for each confirmation.

What was sent is remembered by the LMS's user who got it: whose submission it was may be found out later. An
intention is on the disk before anything is sent, with what stood in the LMS then; a confirmation states
what stood there afterwards. So after a crash between the two, what stands there now shows whether the
intention was carried out. Lines are only added; a line that was torn by a crash does not count.
Tests: `tests/publishing/test_push_journal.py`.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from grader.domain.errors import UsageError
from grader.files import atomic
from grader.files.file_names import sanitized
from grader.files.folder_lock import locked_folder
from grader.files.stored_records import validator
from grader.lms.online_assignment import PostedComment, Standing

FOLDER = "pushed"  # in the folder of the results
Recipient = tuple[str, str]
"""(the LMS's key of a user, empty); in older journals, which did not note it, (empty, the student's id)."""


class Intention(BaseModel):
    """What is about to be sent for one student.

    Attributes:
        key: The LMS's key of the user; empty in older journals.
        points: In points of the LMS.
        content: Digest of everything that is sent.
        comment: Its text.
        file: The name of the attached report; empty if there is none.
        before_points, before_version, before_comments: What stood there.
        why: The reason for overwriting what was edited there; empty otherwise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["intention"] = "intention"
    student_id: str
    key: str = ""
    points: float
    content: str
    comment: str
    file: str
    before_points: float | None
    before_version: str
    before_comments: tuple[str, ...]
    at: datetime
    who: str
    why: str = ""

    @property
    def recipient(self) -> Recipient:
        """Who got it, or was to."""
        return _recipient(self.key, self.student_id)

    def has_arrived(self, there: Standing) -> bool:
        """Whether it was carried out, judging by what stands there."""
        if there.points != self.points or not there.is_mine:
            return False
        if there.version:
            return there.version != self.before_version
        return bool(self.comment_in(there))

    def comment_in(self, there: Standing) -> str:
        """The key of its comment; empty if the comment is not there."""
        stem = self.file.rpartition(".")[0]  # a second file of a name gets a number behind it

        def is_own(comment: PostedComment) -> bool:
            if stem:
                return comment.is_mine and any(stem in file for file in comment.files)
            return comment.is_mine and comment.text.split() == self.comment.split()

        new = (comment for comment in there.comments if comment.key not in self.before_comments)
        return next((comment.key for comment in new if is_own(comment)), "")

    def left_all_as_it_was(self, there: Standing) -> bool:
        """Whether all stands there as it was before, or only a part of the intention arrived.

        Then it may be sent again.
        """
        if there.version or self.before_version:
            return (there.points, there.version) == (self.before_points, self.before_version)
        return there.points == self.before_points or (there.points == self.points and there.is_mine)


class Confirmation(BaseModel):
    """What stood in the LMS after something was sent for one student.

    Attributes:
        key: The LMS's key of the user; empty in older journals.
        content: Digest of everything that was sent.
        comment_key: The LMS's key of our comment; empty if the LMS states none.
        comment_digest: Digest of the comment's text, as it stands there; `comment` in older journals.
        attempt: The student's attempt that got the grade; 0 in older journals.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["confirmation"] = "confirmation"
    student_id: str
    key: str = ""
    points: float | None
    content: str
    version: str
    comment_key: str
    comment_digest: str = Field(validation_alias=AliasChoices("comment_digest", "comment"))
    at: datetime
    attempt: int = 0

    @property
    def recipient(self) -> Recipient:
        """Who got it."""
        return _recipient(self.key, self.student_id)

    def is_outdated(self, there: Standing) -> bool:
        """Whether the student has a later attempt there, which nobody has graded."""
        return there.points is None and there.attempt > self.attempt

    def edit_since(self, there: Standing) -> str:
        """What was edited in the LMS since, as a clause; empty if nothing was."""
        if there.points != self.points:
            return "the grade was changed there"
        if there.version != self.version:
            return "somebody saved it there again"
        if self.comment_key:
            texts = {comment.key: comment.text for comment in there.comments}
            if self.comment_key not in texts:
                return "our comment was deleted there"
            if digest(texts[self.comment_key]) != self.comment_digest:
                return "our comment was edited there"
        return ""


def _recipient(key: str, student_id: str) -> Recipient:
    return (key, "") if key else ("", student_id)


def confirmation(intention: Intention, there: Standing, at: datetime) -> Confirmation:
    """The confirmation that an intention was carried out."""
    key = intention.comment_in(there)
    text = next((comment.text for comment in there.comments if comment.key == key), "")
    return Confirmation(
        student_id=intention.student_id,
        key=intention.key,
        points=there.points,
        content=intention.content,
        version=there.version,
        comment_key=key,
        comment_digest=digest(text) if key else "",
        at=at,
        attempt=there.attempt,
    )


@dataclass(frozen=True)
class Memory:
    """What is remembered about one user of the LMS.

    Attributes:
        open: An intention that was not confirmed.
        confirmed: The last confirmation.
    """

    open: Intention | None = None
    confirmed: Confirmation | None = None


class PushJournal:
    """What was sent to one assignment of one LMS.

    Args:
        out: The folder of the results.
        target: The LMS, its address, the course and the assignment.
    """

    def __init__(self, out: Path, target: tuple[str, ...]) -> None:
        name = "-".join(sanitized(part) for part in (target[0], *target[2:]))
        self.path = out / FOLDER / f"{name}-{digest(' '.join(target))[:8]}.jsonl"

    def memories(self) -> dict[Recipient, Memory]:
        """What is remembered, by who got it."""
        remembered: dict[Recipient, Memory] = {}
        for entry in self._entries():
            before = remembered.get(entry.recipient, Memory())
            remembered[entry.recipient] = (
                Memory(entry, before.confirmed) if isinstance(entry, Intention) else Memory(None, entry)
            )
        return remembered

    def _entries(self) -> Iterator[Intention | Confirmation]:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read ({error.strerror}). Nothing was sent.") from None
        for number, line in enumerate(lines, 1):
            try:
                yield validator(Intention | Confirmation).validate_json(line)
            except ValidationError:
                if line.strip().endswith(b"}"):
                    raise UsageError(
                        f"{self.path}, line {number}, is not as the grader wrote it. Restore the file, or "
                        "remove it: then grades that stand in the LMS count as edited there."
                    ) from None

    def add(self, entry: Intention | Confirmation) -> None:
        """Add an entry, which is on the disk when this returns.

        Raises:
            UsageError: The disk does not take it.
        """
        # a line that a crash tore ends here, too
        content = b"\n" + entry.model_dump_json().encode("utf-8") + b"\n"
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                if os.write(descriptor, content) < len(content):  # the disk is nearly full
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written ({error.strerror}), so nothing more is sent. Make room there."
            ) from None

    @contextlib.contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep other pushes from this results folder away, as far as the system can.

        Raises:
            UsageError: Another one is running, or nothing can be written here.
        """
        atomic.make_folder(self.path.parent)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(locked_folder(self.path.parent, wait=False))
            except BlockingIOError:
                raise UsageError(
                    f"{self.path.parent}: another push from this folder is running. Wait until it has ended."
                ) from None
            yield


def digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal."""
    return sha256(text.encode("utf-8")).hexdigest()
