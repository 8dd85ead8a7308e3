"""Points, with a reason for each."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class GradeStatus(StrEnum):
    """What a result is."""

    GRADED = "graded"
    INCOMPLETE = "incomplete"  # a required file is missing: graded and shown, total withheld
    REFUSED = "refused"  # nothing in it can be graded
    ENGINE_ERROR = "engine_error"  # ours


@dataclass(frozen=True)
class ScoreEdit:
    """A person's change to a line: who, when, why, from what to what."""

    who: str
    when: datetime
    why: str
    old: float | None
    new: float | None


@dataclass(frozen=True)
class ComponentScore:
    """A component's share of an item: points None when nothing of it could be decided."""

    component: str
    points: float | None
    maximum: float
    passed: int
    total: int
    reason: str = ""


@dataclass(frozen=True)
class ScoreLine:
    """One rubric item's points.

    Attributes:
        points: None when a person must decide, or it was not run.
        reason: Why these points, in a sentence.
        state: `decided`, `awaiting` (a person) or `not_run`.
        floor: Points that are secured already although the line is not decided.
        components: The shares, for items that are made of components.
    """

    id: str
    title: str
    points: float | None
    maximum: float
    reason: str
    state: str
    floor: float | None = None
    components: tuple[ComponentScore, ...] = ()
    edits: tuple[ScoreEdit, ...] = ()


@dataclass(frozen=True)
class Score:
    """The points of one submission.

    Attributes:
        total: The sum of what is known; None for `refused` and `engine_error`, and withheld (None) for
            `incomplete`.
        decided: The maximum of the lines that are decided ("58 of 65 decided").
        maximum: Of all lines.
    """

    student_id: str
    status: GradeStatus
    lines: tuple[ScoreLine, ...]
    total: float | None
    decided: float
    maximum: float
    reason: str = ""

    @property
    def awaiting(self) -> tuple[str, ...]:
        """The ids of the lines that a person still marks."""
        return tuple(line.id for line in self.lines if line.state == "awaiting")

    @property
    def not_run(self) -> tuple[str, ...]:
        """The ids of the lines that were not run on request."""
        return tuple(line.id for line in self.lines if line.state == "not_run")
