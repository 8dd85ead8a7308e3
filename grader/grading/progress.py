"""What a run tells those who watch it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class GradingStage(StrEnum):
    """Where a submission is, in the order of the flow."""

    READING = "reading"
    CHECKS = "checks"
    TRAINING = "training"
    CHECKPOINT = "checkpoint"
    DONE = "done"


@dataclass(frozen=True)
class Progress:
    """A submission has come further.

    Attributes:
        share: How much of the stage is done, 0 to 1.
        text: A few words: `23 of 44 checks`, `epoch 7 of 30, 71 %`.
    """

    student_id: str
    stage: GradingStage
    share: float = 0.0
    text: str = ""


UNCHANGED = "unchanged"  # the text of one that is done because nothing was to be done

Watcher = Callable[[Progress], None]
