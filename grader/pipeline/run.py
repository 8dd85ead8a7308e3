"""What the stages of one submission share: the run that they belong to, and what was found so far."""

import hashlib
import hmac
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from grader.analysis.run_time import run_time_uses
from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.program import Program
from grader.domain.submission import Submission
from grader.domain.view import View
from grader.domain.watch import Watched
from grader.kit.splits import Splits
from grader.pipeline.hosts import Hosts
from grader.pipeline.turns import Turns
from grader.reporting.view_file import VIEW_FILE, view_bytes


@dataclass(frozen=True)
class Run:
    """What all submissions of a run share.

    Attributes:
        splits: The hidden split; None when nothing is trained.
        device: Where training runs: `cpu` or `cuda`.
        turns: Who trains there now.
    """

    course: Course
    assignment: Assignment
    hosts: Hosts
    splits: Splits | None
    device: str = "cpu"
    turns: Turns = field(default_factory=Turns)

    @cached_property
    def data_digest(self) -> str:
        """SHA-256 over the images, their labels and their split, hexadecimal; empty without images."""
        if self.splits is None:
            return ""
        splits, whole = self.splits, hashlib.sha256()
        for text in (splits.name, *splits.classes, *splits.train_names, "", *splits.test_names):
            whole.update(text.encode() + b"\0")
        for array in (splits.train_images, splits.train_labels, splits.test_images, splits.test_labels):
            whole.update(str(array.shape).encode())
            whole.update(np.ascontiguousarray(array).data)
        return whole.hexdigest()


@dataclass
class Findings:
    """The evidence of one submission while it is collected."""

    evidence: Evidence
    images: dict[str, bytes] = field(default_factory=dict)

    def add(self, **values: Any) -> None:
        """Replace parts of the evidence."""
        self.evidence = replace(self.evidence, **values)

    def add_watched(self, assignment: Assignment, program: Program, watched: Watched) -> None:
        """Add what was seen of forbidden parts while the code ran."""
        known = self.evidence
        self.add(
            forbidden=(
                *known.forbidden,
                *run_time_uses(assignment, program, known.forbidden, watched.reached),
            ),
            pried=tuple(dict.fromkeys((*known.pried, *watched.pried))),
            unproven=tuple(dict.fromkeys((*known.unproven, *watched.unproven))),
        )

    def show(self, view: View) -> None:
        """Keep the file as a person reads it."""
        self.images[VIEW_FILE] = view_bytes(view)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note how long a stage took."""
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = {**(self.evidence.seconds or {}), stage: round(time.monotonic() - started, 3)}
            self.add(seconds=seconds)


def hidden_seed(course: Course, submission: Submission, purpose: str) -> int:
    """A seed that is the same on every run, and that neither the student nor a worker can work out.

    Args:
        purpose: What it is for; from the seed of one purpose none of the others follows.
    """
    told = hmac.digest(course.secret.encode(), f"{purpose}:{submission.digest}".encode(), "sha256")
    return int.from_bytes(told[:8], "big") >> 1


def told_seed(submission: Submission) -> int:
    """The seed of what happens in a worker, which knows it: it has nothing of the course's secret."""
    return int.from_bytes(hashlib.sha256(submission.digest.encode()).digest()[:4], "big") >> 1
