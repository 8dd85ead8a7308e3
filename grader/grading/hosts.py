"""The three hosts of a run: parsers and workers, locked down, and judges, trusted."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.evidence import Attestation
from grader.parser.messages import MODULE as PARSER_MODULE
from grader.parser.messages import SOURCE_LIMITS, VIEWS
from grader.sandbox.given_files import given_files
from grader.sandbox.host_client import Host

# earlier ones have holes in loading checkpoints (CVE-2025-32434, CVE-2026-24747)
MINIMUM_TORCH = (2, 10)


@dataclass(frozen=True)
class Hosts:
    """Where a run's processes come from."""

    parsers: Host
    judges: Host
    workers: Host

    @cached_property
    def isolation(self) -> Attestation:
        """What isolates those that read submissions; that is proved once.

        Raises:
            SandboxError: It does not hold.
        """
        with self.parsers.spawn(SOURCE_LIMITS) as parser:
            return parser.attestation


@contextlib.contextmanager
def running_parsers(
    course: Course, *, hidden: tuple[Path, ...], unofficial: bool, views: bool = False
) -> Iterator[Host]:
    """Start the parsers' host, which is ready long before the others, and end it afterwards.

    Args:
        hidden: Folders that no parser may see, besides the course.
        unofficial: Accept less isolation than an official grade needs.
        views: Submissions will be rendered: what that takes is loaded at once.

    Raises:
        SandboxError: The machine gives too little isolation.
    """
    folders = (course.root, *hidden)
    starting = Host.start(
        PARSER_MODULE,
        [VIEWS] if views else [],
        hidden=folders,
        unofficial=unofficial,
        wrapped=True,
    )
    with starting as parsers:
        yield parsers


@contextlib.contextmanager
def running_hosts(
    course: Course,
    assignment: Assignment,
    *,
    hidden: tuple[Path, ...],
    unofficial: bool,
    parsers: Host | None = None,
) -> Iterator[Hosts]:
    """Start the hosts, and end them with all their children afterwards.

    Args:
        hidden: Folders that no student's code may see, besides the course.
        unofficial: Accept less isolation than an official grade needs.
        parsers: The parsers' host, when it runs already.

    Raises:
        UsageError: The installed PyTorch is too old for other people's checkpoints.
        SandboxError: The machine gives too little isolation.
    """
    _require_torch()
    folders = (course.root, *hidden)
    with contextlib.ExitStack() as stack:
        given = given_files(assignment)
        workers = Host.start(
            "grader.worker", hidden=folders, unofficial=unofficial, wrapped=True, given=given
        )
        stack.callback(workers.close)
        judges = Host.start("grader.judge", [str(assignment.folder)])
        stack.callback(judges.close)
        if parsers is None:
            starting = running_parsers(course, hidden=hidden, unofficial=unofficial, views=True)
            parsers = stack.enter_context(starting)
        yield Hosts(parsers, judges, workers)


def is_new_enough(torch: str) -> bool:
    """Whether this version of PyTorch (`2.10.0+cpu`) may open other people's checkpoints."""
    return tuple(int(part) for part in torch.split("+")[0].split(".")[:2]) >= MINIMUM_TORCH


def _require_torch() -> None:
    installed = version("torch")
    if not is_new_enough(installed):
        raise UsageError(
            f"PyTorch {installed} has known holes in loading other people's checkpoints. Install torch >= "
            f"{'.'.join(map(str, MINIMUM_TORCH))} to grade; `grader check` of your own code works with it."
        )
