"""Results that a report is to explain."""

import io

from PIL import Image

from grader.domain.evidence import AttentionMap, Prediction, Training, TrainingOutcome
from grader.domain.measure import StudyAgain, StudyRow
from grader.reports.student.trained_models import mistakes, study_rows

PNG = io.BytesIO()
Image.new("L", (2, 2)).save(PNG, format="PNG")
PICTURES = dict.fromkeys(("a.png", "b.png", "c.png", "d.png", "map.png"), PNG.getvalue())


def test_mistakes_are_those_that_the_model_is_surest_of() -> None:
    """One with an overlay comes first; what is right is not a mistake."""
    shown = tuple(
        Prediction(name, true, said, sure, ((said, sure), (true, 0.1)))
        for name, true, said, sure in (
            ("a.png", 0, 0, 0.99),
            ("b.png", 0, 1, 0.5),
            ("c.png", 1, 0, 0.9),
            ("d.png", 1, 0, 0.6),
        )
    )
    training = Training(
        TrainingOutcome.COMPLETED,
        classes=("cat", "dog"),
        predictions=shown,
        attention=(AttentionMap("d.png", "map.png", "map.png"),),
    )
    first, second = mistakes(training, PICTURES)
    assert first.overlay and not second.overlay
    assert first.likeliest == (("cat", 0.6), ("dog", 0.1)) and second.likeliest[0] == ("cat", 0.9)


def test_rows_are_told_by_their_difference_from_the_base() -> None:
    base = {"depth": "2", "dim": "8"}
    study = StudyAgain(
        (
            StudyRow(base, 0.5, 0.4, is_base=True),
            StudyRow({"depth": "4", "dim": "8"}, 0.55, 0.43),
            StudyRow({"depth": "2", "dim": "16"}, 0.6, None, why_not="It took too long."),
        ),
    )
    shown = [
        (row.name, round(row.claimed, 3), row.measured and round(row.measured, 3))
        for row in study_rows(study)
    ]
    assert shown == [
        ("base", 0.5, 0.4),
        ("depth 4 instead of 2", 0.05, 0.03),
        ("dim 16 instead of 8", 0.1, None),
    ]
