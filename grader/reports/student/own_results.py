"""Results that a student's report is to explain: where the model is surest and wrong, a row of the study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.domain.evidence import Training
from grader.domain.study_table import StudyAgain
from grader.reports.data_uri import data_uri

MISCLASSIFIED = 2


@dataclass(frozen=True)
class ShownMistake:
    """A test image that the model takes for another class.

    Attributes:
        picture, overlay: Data URIs: the image, and where the model looked; empty where there is none.
        likeliest: (class, probability), the highest first.
    """

    picture: str
    overlay: str
    true_class: str
    likeliest: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ShownStudyRow:
    """A row of the study in the table of those that were trained again.

    Attributes:
        name: How it differs from the base: `depth 4`.
        claimed, measured: Differences from the base, 0 to 1; of the base itself, what it reached.
    """

    name: str
    is_base: bool
    claimed: float
    measured: float | None
    why_not: str


def mistakes(training: Training, images: Mapping[str, bytes]) -> tuple[ShownMistake, ...]:
    """The shown test images of which the model is surest and wrong, those with an overlay first.

    Args:
        images: PNG bytes by the names that predictions and maps use.
    """
    overlays = {each.prediction: each.last_layer for each in training.attention}
    wrong = [one for one in training.predictions if one.predicted_class != one.true_class]
    wrong.sort(key=lambda one: (one.image not in overlays, -one.confidence))
    return tuple(
        ShownMistake(
            data_uri(images, one.image),
            data_uri(images, overlays[one.image]) if one.image in overlays else "",
            training.class_name(one.true_class),
            tuple((training.class_name(index), share) for index, share in one.likeliest),
        )
        for one in wrong[:MISCLASSIFIED]
    )


def study_rows(study: StudyAgain) -> tuple[ShownStudyRow, ...]:
    """The rows that were trained again, the base first."""
    base = study.rows[0] if study.rows else None
    found = []
    for row in study.rows:
        if row is base or base is None:
            found.append(ShownStudyRow("base", True, row.claimed, row.measured, row.why_not))
            continue
        known = row.measured is not None and base.measured is not None
        found.append(
            ShownStudyRow(
                difference(row.values, study.base),
                False,
                row.claimed - base.claimed,
                row.measured - base.measured if known else None,  # type: ignore[operator]  # both are known
                row.why_not,
            )
        )
    return tuple(found)


def difference(values: Mapping[str, str], base: Mapping[str, str]) -> str:
    """How a row differs from the base: `depth 4 instead of 2`."""
    changed: Sequence[str] = [name for name, value in values.items() if base.get(name) != value]
    return ", ".join(f"{name} {values[name]} instead of {base.get(name, '')}" for name in changed) or "base"
