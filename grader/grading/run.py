"""What the stages of one submission share: the run that they belong to, and what was found so far."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from grader.analysis.run_time import run_time_uses
from grader.course.locate import Course
from grader.domain.answers import Answers
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.program import Program
from grader.domain.seeds import submission_seed, training_seed
from grader.domain.submission import Submission
from grader.domain.submission_view import View
from grader.domain.watch import Watched
from grader.files.view_file import VIEW_FILE, view_bytes
from grader.grading.gpu_slots import Turns
from grader.grading.hidden_splits import HiddenData
from grader.grading.hosts import Hosts


@dataclass(frozen=True)
class Run:
    """What all submissions of a run share.

    Attributes:
        splits: The hidden data; None when nothing is trained.
        device: Where training runs: `cpu` or `cuda`.
        turns: Who trains there now.
    """

    course: Course
    assignment: Assignment
    hosts: Hosts
    splits: HiddenData | None
    device: str = "cpu"
    turns: Turns = field(default_factory=Turns)


@dataclass
class EvidenceBuilder:
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

    def keep_answers(self, answers: Answers, files: Mapping[str, bytes]) -> None:
        """Keep the PDF that people mark, with its pages."""
        self.add(answers=answers)
        self.images |= files

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note how long a stage took, in all its parts."""
        started = time.monotonic()
        try:
            yield
        finally:
            known = self.evidence.seconds or {}
            took = known.get(stage, 0.0) + time.monotonic() - started
            self.add(seconds={**known, stage: round(took, 3)})


def hidden_seed(course: Course, submission: Submission, purpose: str, run: int = 1) -> int:
    """A seed that is the same on every run, and that neither the student nor a worker can work out.

    Args:
        purpose: What it is for; from the seed of one purpose none of the others follows.
        run: Which of the submission's trainings it is for, where there are several.
    """
    return submission_seed(course.secret, purpose, submission.digest, run)


def told_seed(course: Course, submission: Submission, run: int, further: str = "") -> int:
    """The seed of a training, which its worker is told: the student cannot know it beforehand.

    Args:
        run: Which of the model's trainings, 1-based: the next one's does not follow from it.
        further: The measure's id, of another model than the first.
    """
    return training_seed(course.secret, submission.digest, run, further)
