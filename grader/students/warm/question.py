"""Asks a warm process for a check, before this process has loaded what shows the findings.

Every check waits for what is imported here: only little of the standard library. `grader check` asks by it
before it loads its views; `grader check --watch` never does.
"""

import hashlib
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.files.known_folders import handed_out_folder, homework_in
from grader.students.warm.address import Messages, Unanswered, WarmAddress, fingerprint, private_folder, tell

SWITCH = "GRADER_WARM"
BEGUN_SECONDS = 60.0  # within which a starting process begins to answer; a check without it takes no longer


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment allows a process to stay; it is useless where each machine checks once."""
    return environment.get(SWITCH, "") != "0" and environment.get("CI", "").lower() in ("", "0", "false")


def warm_address(folder: Path) -> WarmAddress:
    """Where the warm process of an assignment listens, if there is one.

    Args:
        folder: The assignment's, as students have it.

    Raises:
        OSError: The user has no private folder, or its path is too long for sockets.
    """
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    address = WarmAddress(private_folder(), name)
    address.require()
    return address


@dataclass(frozen=True)
class Question:
    """A warm process that was asked for a check.

    Attributes:
        file: The homework as it was named.
        tried: Whether the training is to be tried, too.
        part: The only part that is to be checked; empty: all are.
    """

    connection: socket.socket
    file: Path
    tried: bool
    part: str = ""

    @classmethod
    def asked(cls, folder: Path, file: Path, *, tried: bool, part: str = "") -> "Question":
        """Ask for a check.

        Args:
            folder: The assignment's, as students have it.
            part: A part that the assignment has; empty: all.

        Raises:
            OSError: No warm process listens, or there can be none.
            Unanswered: The file with its port cannot be read.
        """
        connection, secret = warm_address(folder).connected(BEGUN_SECONDS)
        try:
            tell(
                connection,
                {
                    "secret": secret,
                    "fingerprint": fingerprint(folder, os.environ),
                    "file": str(file),
                    "folder": str(Path.cwd()),
                    "environment": dict(os.environ),
                    "tried": tried,
                    "part": part,
                },
            )
        except BaseException:
            connection.close()
            raise
        return cls(connection, file, tried, part)

    def answers(self) -> Iterator[dict[str, Any]]:
        """What it answers; the connection is closed after the last answer that is read.

        Raises:
            Unanswered: It does not fit this check, or does not answer completely.
        """
        with self.connection:
            for message in Messages(self.connection):
                # it has begun, and will end just as a check without it would
                self.connection.settimeout(None)
                if "begun" not in message:
                    yield message


def early_question(
    working: Path, file: Path | None, folder: Path | None, *, tried: bool = True
) -> Question | None:
    """Ask for the check of a homework in a folder that the course handed out; None where nothing listens.

    Args:
        working: The folder that the student works in.
        file: The homework; None: it is looked for there.
        folder: The folder that the course handed out, where the student names it.
    """
    if not is_wanted(os.environ):
        return None
    path = file or homework_in(working)
    if path is None:
        return None
    handed_out = folder or handed_out_folder((path.parent, working))
    if handed_out is None:
        return None
    try:
        return Question.asked(handed_out, path, tried=tried)
    except (OSError, Unanswered):
        return None
