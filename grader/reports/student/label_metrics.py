"""Precision, recall, F1 and ROC area of each class."""

from dataclasses import dataclass

from grader.domain.evidence import Training


@dataclass(frozen=True)
class ClassFigures:
    """One class; a share is None where there is nothing to divide by.

    Attributes:
        images: Test images of this class.
        precision: Of those that were taken for it, the share that is.
        recall: Of those that are, the share that was found.
        f1: The harmonic mean of both.
        area: Under its receiver operating characteristic.
    """

    name: str
    images: int
    precision: float | None
    recall: float | None
    f1: float | None
    area: float | None = None


def class_figures(training: Training) -> tuple[ClassFigures, ...]:
    """The figures of each class, in the order of the classes."""
    counts = training.confusion
    found = []
    for index, row in enumerate(counts):
        hits, images = row[index], sum(row)
        taken = sum(other[index] for other in counts)
        name = training.classes[index] if index < len(training.classes) else f"class {index}"
        # F1 = 2 hits / (taken + images), which is defined where precision alone is not
        found.append(
            ClassFigures(
                name,
                images,
                _share(hits, taken),
                _share(hits, images),
                _share(2 * hits, taken + images),
                training.roc[index].area if index < len(training.roc) else None,
            )
        )
    return tuple(found)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
