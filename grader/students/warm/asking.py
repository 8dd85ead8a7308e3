"""A check made by the warm process; or else made here, and a warm process started for the next check."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from grader.domain.analyzed_program import Program
from grader.domain.evidence import Finding
from grader.files.stored_records import validator
from grader.students.homework import LocalAssignment
from grader.students.own_check import LocalCheck, local_check
from grader.students.warm.address import Unanswered, WarmAddress, names_in, private_folder
from grader.students.warm.question import Question, is_wanted, warm_address
from grader.students.warm.starting import start

Kind = TypeVar("Kind")

STOP_SECONDS = 10.0


@dataclass
class _Reported:
    """Reports each finding once, also when a check is made again from its beginning."""

    read: Callable[[Program], None]
    report: Callable[[Finding], None]
    reported: int = 0
    made: int = 0

    def begin(self, program: Program) -> None:
        """A check begins."""
        self.made = 0
        self.read(program)

    def finding(self, new: Finding) -> None:
        """A finding was made; the same file gives the same ones, in the same order."""
        self.made += 1
        if self.made > self.reported:
            self.reported = self.made
            self.report(new)


def quick_check(
    path: Path,
    local: LocalAssignment,
    *,
    read: Callable[[Program], None] = lambda program: None,
    report: Callable[[Finding], None] = lambda finding: None,
    tried: bool = True,
    warm: bool = True,
    question: Question | None = None,
) -> LocalCheck:
    """What `local_check` finds, from a warm process if one answers; else one is started for the next check.

    Args:
        warm: Ask a warm process, or start one, where the environment allows one to stay.
        question: What was already asked about this file.

    Raises:
        UsageError, SubmissionError, CourseError: As for `local_check`.
    """
    reported = _Reported(read, report)
    folder = local.assignment.folder
    environment = dict(os.environ)  # a check sets variables of its own in this process
    warm = warm and is_wanted(environment)
    # without a private folder, or room in it, everything is as if there were no such processes
    if warm and question is None:
        with contextlib.suppress(Unanswered, OSError):
            question = Question.asked(folder, path, tried=tried, part=local.part)
    if warm and question is not None:
        with contextlib.suppress(Unanswered):
            return _answered(question, reported)
    check = local_check(path, local, read=reported.begin, report=reported.finding, tried=tried)
    if warm:
        with contextlib.suppress(OSError):
            start(warm_address(folder), folder, local.datasets, environment)
    return check


def _answered(question: Question, reported: _Reported) -> LocalCheck:
    """What a warm process finds.

    Raises:
        Unanswered: It does not fit this check, does not answer, or could not make the check.
    """
    for message in question.answers():
        if "program" in message:
            reported.begin(_valid(Program, message["program"]))
        elif "finding" in message:
            reported.finding(_valid(Finding, message["finding"]))
        elif "found" in message:
            return _valid(LocalCheck, message["found"])
    raise Unanswered("the check is to be made anew")


def _valid(kind: type[Kind], document: Any) -> Kind:
    try:
        value: Kind = validator(kind).validate_python(document)
        return value
    except ValueError as error:
        raise Unanswered(str(error)) from error


def stop() -> int:
    """End all warm processes of the user, once their checks in progress are done.

    Returns:
        How many were ended.
    """
    try:
        folder = private_folder()
    except OSError:
        return 0
    ended = 0
    for name in names_in(folder):
        address = WarmAddress(folder, name)
        pid = address.pid()
        if pid is None:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            ended += 1
        _wait_for_end(address)
    return ended


def _wait_for_end(address: WarmAddress) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while address.lock.is_held() and time.monotonic() < deadline:
        time.sleep(0.02)
