"""Where the submissions of a class are examined: on this machine, or wherever else somebody provides.

An examiner examines one submission at a time for each of those who ask it. `grader.cluster` has one that
hands the work to other machines; the results are the same.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from grader.course.locate import Course
from grader.domain.evidence import Evidence
from grader.domain.submission import Submission
from grader.grading.concurrent_work import Watcher
from grader.grading.devices import device_slots, training_device
from grader.grading.run import EvidenceBuilder, Run, RunBasis, running_hosts
from grader.grading.submission_run import examined, examined_longer
from grader.sandbox.host_client import Host


@dataclass(frozen=True)
class SubmissionWork:
    """A submission that is to be examined, or trained with more time.

    Attributes:
        attempt: Which of the student's attempts it is, 1 for the first: see `attempt_number`.
        earlier: The evidence so far, with a training that our limit stopped: that alone gets more time. None:
            all is to be examined.
        images: The pictures that belong to `earlier`.
    """

    submission: Submission
    attempt: int
    earlier: Evidence | None = None
    images: Mapping[str, bytes] = field(default_factory=dict)


class Examiner(Protocol):
    """Examines submissions; it is asked from several threads at once."""

    @property
    def run(self) -> RunBasis:
        """What the submissions have in common."""

    @property
    def device(self) -> str:
        """Where training runs: `cpu` or `cuda`."""

    @property
    def places(self) -> int | None:
        """How many submissions are examined at once now; None: as many as it is asked for."""

    def examined(self, work: SubmissionWork, *, graded_at: datetime, watch: Watcher) -> EvidenceBuilder:
        """The evidence of a submission, with its pictures. A failure of the engine is evidence too.

        Args:
            graded_at: For the record.
            watch: Called with the progress.
        """


@dataclass(frozen=True)
class ClassWork:
    """What an examiner of a class is made for.

    Attributes:
        basis: What its submissions have in common.
        parsers: The host on this machine that reads uploads.
        out: The folder of the results.
        hidden: Folders that no student's code may see, besides the course.
        device: Where training is to run: `cpu`, `cuda` or `auto`.
        unofficial: Accept less isolation than an official grade needs.
    """

    course: Course
    basis: RunBasis
    parsers: Host
    out: Path
    hidden: tuple[Path, ...]
    device: str
    unofficial: bool


class Machines(Protocol):
    """The machines that a class is examined on."""

    @property
    def page_processes(self) -> int:
        """How many processes of this machine write students' pages meanwhile; 0: none of their own."""

    def threads(self, jobs: int) -> int:
        """How many submissions an examiner is asked for at once, where `jobs` suit this machine."""

    def examiner(self, work: ClassWork) -> contextlib.AbstractContextManager[Examiner]:
        """An examiner for a class, until the context ends.

        Raises:
            UsageError: They cannot be used for this.
            SandboxError: They isolate too little.
        """


@dataclass(frozen=True)
class OnThisMachine:
    """Examines them here, with the hosts of the run."""

    run: Run

    @property
    def device(self) -> str:
        """Where training runs."""
        return self.run.device

    @property
    def places(self) -> None:
        """As many as it is asked for."""

    def examined(self, work: SubmissionWork, *, graded_at: datetime, watch: Watcher) -> EvidenceBuilder:
        """See `Examiner`."""
        if work.earlier is None:
            return examined(self.run, work.submission, attempt=work.attempt, graded_at=graded_at, watch=watch)
        return examined_longer(
            self.run, work.submission, work.earlier, work.images, graded_at=graded_at, watch=watch
        )


class ThisMachine:
    """This machine alone."""

    page_processes = 0

    def threads(self, jobs: int) -> int:
        """As many as suit it."""
        return jobs

    @contextlib.contextmanager
    def examiner(self, work: ClassWork) -> Iterator[OnThisMachine]:
        """An examiner with hosts that are started for it."""
        basis = work.basis
        device = "cpu"
        if basis.splits is not None:
            device = training_device(work.device, unofficial=work.unofficial)
        hosts = running_hosts(
            work.course,
            basis.assignment,
            hidden=work.hidden,
            unofficial=work.unofficial,
            parsers=work.parsers,
        )
        with hosts as running:
            slots = device_slots(device, basis.assignment.limits.gpu_memory_mb)
            yield OnThisMachine(Run(basis.draw, basis.assignment, basis.splits, running, device, slots))
