"""What the student's page shows of each model that was trained, and of its results.

It collects the plan, the charts, the confusion matrix and the predictions of each model. It also collects
the results that the student's report has to explain: the model's surest mistakes, and the rows of the
study. It never words how a training went (`training_texts` does), and it measures nothing itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from grader.domain.assignment import Assignment
from grader.domain.evidence import Checkpoint, Evidence, Prediction, Training
from grader.domain.measure import Measure, StudyAgain, call_in_words
from grader.domain.program_run import Rehearsal
from grader.domain.submission import Role
from grader.language import ENGLISH, Language
from grader.reports.measured_words import MeasuredWords, measured_words
from grader.reports.student import training_charts
from grader.reports.student.code_lines import CodeLine, excerpt
from grader.reports.student.model_figures import ClassFigures, class_figures
from grader.reports.student.training_texts import outcome_sentence, plan_rows
from grader.reports.typesetting import data_uri

MISCLASSIFIED = 2


@dataclass(frozen=True)
class ShownMistake:
    """A test image that the model assigns to a wrong class.

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
    """A row of the study that was trained again, as the table shows it.

    Attributes:
        name: How it differs from the base: `depth 4`.
        claimed, measured: Differences from the base, 0 to 1; for the base itself, what it reached.
    """

    name: str
    is_base: bool
    claimed: float
    measured: float | None
    why_not: str


def mistakes(training: Training, images: Mapping[str, bytes]) -> tuple[ShownMistake, ...]:
    """Of the shown test images, the mistakes of which the model is surest, those with an overlay first.

    Args:
        images: PNG bytes by the names that predictions and maps use.
    """
    overlays = {attention.prediction: attention.last_layer for attention in training.attention}
    wrong = [
        prediction
        for prediction in training.predictions
        if prediction.predicted_class != prediction.true_class
    ]
    wrong.sort(key=lambda prediction: (prediction.image not in overlays, -prediction.confidence))
    return tuple(
        ShownMistake(
            data_uri(images, prediction.image),
            data_uri(images, overlays[prediction.image]) if prediction.image in overlays else "",
            training.class_name(prediction.true_class),
            tuple((training.class_name(index), share) for index, share in prediction.likeliest),
        )
        for prediction in wrong[:MISCLASSIFIED]
    )


def study_rows(study: StudyAgain) -> tuple[ShownStudyRow, ...]:
    """The rows that were trained again, the base first."""
    base = study.rows[0] if study.rows else None
    rows = []
    for row in study.rows:
        if row is base or base is None:
            rows.append(ShownStudyRow("base", True, row.claimed, row.measured, row.why_not))
            continue
        both_measured = row.measured is not None and base.measured is not None
        rows.append(
            ShownStudyRow(
                difference(row.values, study.base),
                False,
                row.claimed - base.claimed,
                row.measured - base.measured if both_measured else None,  # type: ignore[operator]  # both are known
                row.why_not,
            )
        )
    return tuple(rows)


def difference(values: Mapping[str, str], base: Mapping[str, str]) -> str:
    """How a row differs from the base: `depth 4 instead of 2`."""
    changed: Sequence[str] = [name for name, value in values.items() if base.get(name) != value]
    return ", ".join(f"{name} {values[name]} instead of {base.get(name, '')}" for name in changed) or "base"


# --- trained models --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PredictionGroup:
    """The predictions for images of one class.

    Attributes:
        name: The true class.
        shown: (prediction, predicted class's name, data URI or empty, the likeliest classes by name with
            their probabilities).
    """

    name: str
    shown: tuple[tuple[Prediction, str, str, tuple[tuple[str, float], ...]], ...]


@dataclass(frozen=True)
class ConfusionRow:
    """One true class of the confusion matrix.

    Attributes:
        cells: (count, share of the row 0 to 1), one per predicted class.
    """

    name: str
    cells: tuple[tuple[int, float], ...]
    recall: float


@dataclass(frozen=True)
class ShownModel:
    """A model that was trained, as the page shows it.

    Attributes:
        title: What people call it; empty where it is the only one.
        prefix: What the anchors of its section begin with; empty for the first.
        words: How its measure is called and written.
        threshold: The value that the assignment asks for.
        asks_weights: Whether weights are to be handed in.
        outcome: How its training ended, in a sentence.
        called: What was called to train it; empty: its own program trained it.
        plan: What of the program was trained, as names and texts.
        note: What the assignment says about the curves.
        rehearsal: The trial that showed the stages of the training; None: there was none.
        lines: The lines of the student's file where the training ended.
    """

    title: str
    prefix: str
    training: Training
    checkpoint: Checkpoint
    words: MeasuredWords
    asks_weights: bool
    threshold: float | None
    outcome: str
    called: str
    plan: list[tuple[str, str]]
    note: str
    rehearsal: Rehearsal | None
    lines: tuple[CodeLine, ...]
    measured_band: Markup
    accuracy_curve: Markup
    loss_curve: Markup
    class_figures: tuple[ClassFigures, ...]
    roc_chart: Markup
    confusion: tuple[ConfusionRow, ...]
    predictions: tuple[PredictionGroup, ...]


def trained_models(
    assignment: Assignment, evidence: Evidence, images: Mapping[str, bytes], language: Language = ENGLISH
) -> tuple[ShownModel, ...]:
    """Each model that the assignment measures, in its order; none where it has no data.

    Args:
        images: PNG bytes by the names that the predictions use.
        language: The language of the words in the charts.
    """
    if assignment.data is None:
        return ()
    return tuple(
        _shown_model(assignment, measure, evidence.of_measure(measure.id), images, prefix, language)
        for measure, prefix in zip(
            assignment.measures,
            ["", *(f"{measure.id}-" for measure in assignment.measures[1:])],
            strict=True,
        )
    )


def _shown_model(
    assignment: Assignment,
    measure: Measure,
    evidence: Evidence,
    images: Mapping[str, bytes],
    prefix: str,
    language: Language,
) -> ShownModel:
    training, item = evidence.training, assignment.item_measured(measure.id)
    has_plan = measure.call is not None or evidence.plan.why
    threshold, words = item.threshold if item else None, measured_words(assignment, measure)
    return ShownModel(
        title=measure.title if len(assignment.measures) > 1 else "",
        prefix=prefix,
        training=training,
        checkpoint=evidence.checkpoint,
        words=words,
        asks_weights=any(file.role == Role.CHECKPOINT for file in assignment.files),
        threshold=threshold,
        outcome=outcome_sentence(training, measure.call),
        called=call_in_words(measure.call) if measure.call is not None else "",
        plan=plan_rows(evidence.plan, evidence.code_file, measure) if has_plan else [],
        note=measure.note,
        rehearsal=evidence.plan.rehearsal,
        lines=excerpt(evidence.source, training.where),
        measured_band=training_charts.measured_band(
            training.measured, training.interval, item.breakpoints if item else (), words, language
        ),
        accuracy_curve=training_charts.accuracy_curve(
            training.epochs,
            threshold if words.is_accuracy else None,
            stage_beginnings(evidence.plan.rehearsal, len(training.epochs)),
            language,
        ),
        loss_curve=training_charts.loss_curve(training.epochs, language),
        class_figures=class_figures(training),
        roc_chart=training_charts.roc_chart(training.roc, training.classes, language),
        confusion=confusion_rows(training),
        predictions=_prediction_groups(training, images),
    )


def stage_beginnings(rehearsal: Rehearsal | None, epochs: int) -> tuple[int, ...]:
    """The first epoch of each stage but the first, as a trial showed them; empty where there was only one."""
    counts = [stage.epochs for stage in rehearsal.stages[:-1]] if rehearsal is not None else []
    return tuple(1 + before for before in accumulate(counts) if before < epochs)


def confusion_rows(training: Training) -> tuple[ConfusionRow, ...]:
    """The confusion matrix by rows, each count with its share of the row."""
    rows = []
    for index, counts in enumerate(training.confusion):
        images = sum(counts)
        shares = tuple((count, count / images if images else 0.0) for count in counts)
        recall = shares[index][1] if index < len(shares) else 0.0
        rows.append(ConfusionRow(training.class_name(index), shares, recall))
    return tuple(rows)


def _prediction_groups(training: Training, images: Mapping[str, bytes]) -> tuple[PredictionGroup, ...]:
    groups: dict[int, list[Any]] = {}
    for prediction in training.predictions:
        likeliest = tuple((training.class_name(index), share) for index, share in prediction.likeliest)
        shown = (
            prediction,
            training.class_name(prediction.predicted_class),
            data_uri(images, prediction.image),
            likeliest,
        )
        groups.setdefault(prediction.true_class, []).append(shown)
    return tuple(
        PredictionGroup(training.class_name(index), tuple(groups[index])) for index in sorted(groups)
    )
