"""A run: its hosts, its settings, and what the stages of a submission share.

It starts the three hosts (parsers and workers, locked down, and judges, trusted) and ends them. It holds
the evidence of a submission as it grows, and who handed in together: a team's submission is examined once,
and the result is handed on to the other members. It examines nothing itself, and it never decides about
points.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from grader.analysis.forbidden_uses import run_time_uses
from grader.course.locate import Course
from grader.domain.analyzed_program import Note, Program
from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError, SandboxError, UsageError
from grader.domain.evidence import Attestation, Evidence
from grader.domain.program_run import Watched
from grader.domain.run_facts import RunFacts
from grader.domain.submission import Answers, Submission, View
from grader.files.stored_records import VIEW_FILE, view_bytes
from grader.grading.concurrent_work import DeviceSlots
from grader.grading.submission_draws import SubmissionDraws
from grader.kit.splits import Examples, Splits
from grader.parser.messages import MODULE as PARSER_MODULE
from grader.parser.messages import SOURCE_LIMITS, VIEWS
from grader.sandbox.attestation import STRICT
from grader.sandbox.host_client import Host
from grader.sandbox.readable_files import given_files

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
        """The isolation of the processes that read submissions, which is proved once.

        Raises:
            SandboxError: The proof fails.
        """
        with self.parsers.spawn(SOURCE_LIMITS) as parser:
            return parser.attestation


@contextlib.contextmanager
def running_parsers(
    course: Course,
    *,
    hidden: tuple[Path, ...],
    unofficial: bool,
    views: bool = False,
    in_package: bool = False,
) -> Iterator[Host]:
    """Start the parsers' host, which is ready long before the others, and end it afterwards.

    Args:
        hidden: Folders that no parser may see, besides the course.
        unofficial: Accept less isolation than an official grade needs.
        views: Submissions will be rendered: what that needs is loaded at the start.
        in_package: As for `Host.start`.

    Raises:
        SandboxError: The machine gives too little isolation, or less than the course asks for.
    """
    folders = (course.root, *hidden)
    starting = Host.start(
        PARSER_MODULE,
        [VIEWS] if views else [],
        hidden=folders,
        unofficial=unofficial,
        in_package=in_package,
        wrapped=True,
    )
    with starting as parsers:
        if course.minimum_level == STRICT and not unofficial and not in_package:
            with parsers.spawn(SOURCE_LIMITS) as parser:
                require_level(course, parser.attestation)
        yield parsers


def parsing_fault() -> str:
    """Why the processes that open submissions do not start here; empty where they do. It takes seconds."""
    try:
        Host.start(PARSER_MODULE, [VIEWS], unofficial=True, wrapped=True).close()
    except EngineError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def running_hosts(
    course: Course,
    assignment: Assignment,
    *,
    hidden: tuple[Path, ...],
    unofficial: bool,
    parsers: Host | None = None,
    in_package: bool = False,
) -> Iterator[Hosts]:
    """Start the hosts, and end them with all their children afterwards.

    Args:
        hidden: Folders that no student's code may see, besides the course.
        unofficial: Accept less isolation than an official grade needs.
        parsers: The parsers' host, if it is already running.
        in_package: As for `Host.start`.

    Raises:
        UsageError: The installed PyTorch is too old for other people's checkpoints.
        SandboxError: The machine gives too little isolation.
    """
    _require_torch()
    folders = (course.root, *hidden)
    with contextlib.ExitStack() as stack:
        read_only_files = given_files(assignment)
        workers = Host.start(
            "grader.worker",
            hidden=folders,
            unofficial=unofficial,
            in_package=in_package,
            wrapped=True,
            given=read_only_files,
        )
        stack.callback(workers.close)
        judges = Host.start("grader.judge", [str(assignment.folder)])
        stack.callback(judges.close)
        if parsers is None:
            starting = running_parsers(
                course, hidden=hidden, unofficial=unofficial, views=True, in_package=in_package
            )
            parsers = stack.enter_context(starting)
        yield Hosts(parsers, judges, workers)


def require_level(course: Course, attestation: Attestation) -> None:
    """Refuse a machine that isolates less than the course asks for.

    Args:
        attestation: Proved before the submission was loaded.

    Raises:
        SandboxError: It does.
    """
    if course.minimum_level == STRICT and attestation.level != STRICT:
        raise SandboxError(
            f"The course asks for the isolation '{STRICT}', and this machine gives '{attestation.level}'. "
            + " ".join(attestation.missing)
        )


def is_new_enough(torch: str) -> bool:
    """Whether this version of PyTorch (`2.10.0+cpu`) may open other people's checkpoints."""
    return tuple(int(part) for part in torch.split("+")[0].split(".")[:2]) >= MINIMUM_TORCH


def _require_torch() -> None:
    installed = version("torch")
    if not is_new_enough(installed):
        raise UsageError(
            f"PyTorch {installed} has known security holes in loading other people's checkpoints. "
            f"Install torch >= {'.'.join(map(str, MINIMUM_TORCH))} to grade; "
            "`grader check` of your own code works with it."
        )


# --- team members ----------------------------------------------------------------------------------------


def team_representatives(submissions: Sequence[Submission]) -> dict[str, tuple[Submission, ...]]:
    """The first student of each team, and everybody without a team -> the other members.

    Args:
        submissions: In the order in which they are graded; members who are not among them do not count.
    """
    representatives: dict[tuple[str, ...], str] = {}
    others_by_first: dict[str, list[Submission]] = {}
    for submission in submissions:
        first = (
            representatives.setdefault(submission.team, submission.student_id)
            if submission.team
            else submission.student_id
        )
        others = others_by_first.setdefault(first, [])
        if first != submission.student_id:
            others.append(submission)
    return {first: tuple(others) for first, others in others_by_first.items()}


def handed_on(evidence: Evidence, first: Submission, mate: Submission) -> Evidence:
    """The evidence about a team's submission, as another member's.

    Args:
        evidence: What was found out.
        first: The team's submission as it was examined. Its notes concern that student and are not repeated.
        mate: The same submission as the other member's.
    """
    return replace(
        evidence,
        student_id=mate.student_id,
        received_at=mate.received_at,
        delivery=mate.delivery,
        origin=mate.origin,
        notes=(*map(Note, mate.notes), *(note for note in evidence.notes if note.text not in first.notes)),
    )


# --- run -------------------------------------------------------------------------------------------------


class AttemptData(Protocol):
    """The data that each attempt is trained and measured on; `HiddenData` is one."""

    def of(self, attempt: int) -> Splits | Examples:
        """The data of an attempt, 1 for a student's first."""

    def digest(self, attempt: int) -> str:
        """SHA-256 over them, hexadecimal."""

    def are_those_of(self, earlier: RunFacts) -> bool:
        """Whether an earlier run trained on exactly these."""


@dataclass(frozen=True)
class RunBasis:
    """What all submissions of a run have in common, wherever they are examined.

    Attributes:
        draw: Gives what is drawn for a submission: see `draws_of`.
        splits: The hidden data; None when nothing is trained.
    """

    draw: Callable[[Submission], SubmissionDraws]
    assignment: Assignment
    splits: AttemptData | None


@dataclass(frozen=True)
class Run(RunBasis):
    """What they have in common on the machine that examines them.

    Attributes:
        hosts: Where its processes come from.
        device: Where training runs: `cpu` or `cuda`.
        device_slots: The semaphore of the device.
    """

    hosts: Hosts
    device: str = "cpu"
    device_slots: DeviceSlots = field(default_factory=DeviceSlots)


@dataclass
class EvidenceBuilder:
    """The evidence of one submission while it is collected."""

    evidence: Evidence
    images: dict[str, bytes] = field(default_factory=dict)

    def add(self, **values: Any) -> None:
        """Replace parts of the evidence."""
        self.evidence = replace(self.evidence, **values)

    def add_watched(self, assignment: Assignment, program: Program, watched: Watched) -> None:
        """Add the uses of forbidden parts that were seen while the code ran."""
        before = self.evidence
        self.add(
            forbidden=(
                *before.forbidden,
                *run_time_uses(assignment, program, before.forbidden, watched.reached),
            ),
            pried=tuple(dict.fromkeys((*before.pried, *watched.pried))),
            unproven=tuple(dict.fromkeys((*before.unproven, *watched.unproven))),
        )

    def show(self, view: View) -> None:
        """Keep the file as a person reads it."""
        self.images[VIEW_FILE] = view_bytes(view)

    def keep_answers(self, answers: Answers, files: Mapping[str, bytes]) -> None:
        """Keep the PDF that people mark, with its pages."""
        self.add(answers=answers)
        self.images |= files

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note how long a stage took, over all its parts."""
        started = time.monotonic()
        try:
            yield
        finally:
            seconds_before = self.evidence.seconds or {}
            took = seconds_before.get(stage, 0.0) + time.monotonic() - started
            self.add(seconds={**seconds_before, stage: round(took, 3)})
