"""Where a student's model looks, for staff: one HTML file, which is handed out to nobody.

What stands for attention is whatever the student's code computes where it sees the hidden images, and a
picture holds hundreds of numbers: with them it could tell which images these are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Training
from grader.reports.data_uri import data_uri
from grader.reports.typesetting import environment


@dataclass(frozen=True)
class AttentionRow:
    """Where the model looks in one image, as data URIs (empty when missing)."""

    name: str
    predicted: str
    image: str
    last_layer: str
    rollout: str


def shows_attention(evidence: Evidence) -> bool:
    """Whether there is something for such a page."""
    return bool(evidence.training.attention)


def attention_page(
    assignment: Assignment, evidence: Evidence, *, images: Mapping[str, bytes], generated_at: datetime
) -> str | None:
    """The attention of one image per class as a self-contained HTML page; None where none was measured.

    Args:
        assignment: What was asked for.
        evidence: What was found out.
        images: PNG bytes by the names that the evidence uses; what is missing is said to be missing.
        generated_at: When the page is made.
    """
    if not shows_attention(evidence):
        return None
    return (
        environment()
        .get_template("attention.html.j2")
        .render(
            assignment=assignment,
            evidence=evidence,
            attention=_rows(evidence.training, images),
            generated_at=generated_at,
        )
    )


def _rows(training: Training, images: Mapping[str, bytes]) -> tuple[AttentionRow, ...]:
    predictions = {one.image: one for one in training.predictions}
    return tuple(
        AttentionRow(
            training.class_name(predictions[each.prediction].true_class),
            training.class_name(predictions[each.prediction].predicted_class),
            data_uri(images, each.prediction),
            data_uri(images, each.last_layer),
            data_uri(images, each.rollout),
        )
        for each in training.attention
        if each.prediction in predictions
    )
