"""How a measure and its numbers are worded on pages and terminals."""

from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.evidence import Training
from grader.domain.formatting import UNKNOWN, counted, percent, round_percent
from grader.domain.measure import SHARE, Measure, Scale

ACCURACY = "test accuracy"


@dataclass(frozen=True)
class MeasuredWords:
    """How a measure is called, and how its numbers are written.

    Attributes:
        what: What is measured, within a sentence: `test accuracy`, `bits per character`.
        model: The model that is measured, where there are several: `ResNet-18`.
        hidden_data: What it is measured on: `hidden test images`.
        is_accuracy: Whether it is the share of right answers.
        scale: How its numbers are read.
    """

    what: str = ACCURACY
    model: str = ""
    hidden_data: str = "hidden test images"
    is_accuracy: bool = True
    scale: Scale = SHARE

    @property
    def heading(self) -> str:
        """The heading above it: `Test accuracy`, `ResNet-18: test accuracy`."""
        return f"{self.model}: {self.what}" if self.model else self.what[:1].upper() + self.what[1:]

    @property
    def direction(self) -> str:
        """` (lower is better)` where lower is better; else empty."""
        return " (lower is better)" if self.scale.lower_is_better else ""

    def value(self, number: float | None, digits: int = 1) -> str:
        """A measured number: `80.6 %`, `1.834`."""
        if number is None:
            return UNKNOWN
        return percent(number, digits) if self.scale.is_share else self.scale.shown(number)

    def round(self, number: float) -> str:
        """A number that a person chose: `60 %`, `2.5`."""
        return round_percent(number) if self.scale.is_share else self.scale.shown(number)

    def interval(self, training: Training, digits: int = 1) -> str:
        """The 95 % interval: `77.0 % to 84.1 %`; empty where there is none."""
        if training.interval is None:
            return ""
        low, high = training.interval
        return f"{self.value(low, digits)} to {self.value(high, digits)}"

    def measured_on(self, training: Training) -> str:
        """What a training was measured on: `540 hidden test images`."""
        number = sum(sum(row) for row in training.confusion)  # of the images: each is counted once
        return counted(number, self.hidden_data.removesuffix("s")) if number else self.hidden_data


def measured_words(assignment: Assignment, measure: Measure) -> MeasuredWords:
    """The words for a measure of an assignment."""
    images = assignment.data is not None and assignment.data.are_images
    several = len(assignment.measures) > 1
    if not measure.function:
        return MeasuredWords(
            model=measure.title if several else "",
            hidden_data="hidden test images" if images else "hidden data",
        )
    return MeasuredWords(
        what=measure.title or measure.id.replace("_", " "),
        hidden_data="hidden test images" if images else "hidden data",
        is_accuracy=False,
        scale=measure.scale,
    )
