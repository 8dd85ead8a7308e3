"""A training in words: what is planned, how it ended, and one thing to try.

It words the plan as names and texts, the same on a terminal and on a page, and the sentence on how a
training ended. It also chooses the one piece of advice that fits the training's numbers and code. It never
decides what a training is worth, or which fixes are shown first.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.domain.analyzed_program import Place
from grader.domain.assignment import RubricItem
from grader.domain.evidence import Epoch, Evidence, Training, TrainingOutcome
from grader.domain.formatting import counted, duration, listed, points, quantity, within
from grader.domain.measure import Measure, TrainingCall, call_in_words
from grader.domain.program_run import Plan, Rehearsal, Stage
from grader.domain.submission_result import beyond_what_is_allowed
from grader.reports.measured_words import MeasuredWords

MOST_ROWS = 12  # stages that are listed one by one
KEPT = (
    "a tenth of the training images is set aside for what your code measures, "
    "because its decisions depend on that"
)
WIDENED = f"{KEPT}; once everything is decided, they are trained on too"
NEEDED = "their results decide how the one that counts is made or trained"


def plan_rows(plan: Plan, file: str, measure: Measure | None = None) -> list[tuple[str, str]]:
    """The plan of a training, as rows of a name and a text.

    Args:
        file: The submitted file, whose name is left out where one of its lines is named.
        measure: The model's measure, which may limit the training; None: limits are not mentioned.
    """
    if measure is not None and measure.call is not None:
        return list(_stage_rows(plan.rehearsal, file)) if plan.rehearsal is not None else []
    if plan.missing:
        return [("trained", f"nothing: {plan.missing}")]
    beyond = beyond_what_is_allowed(measure, plan.rehearsal) if measure is not None else ()
    return [*_program_rows(plan, file), *(("too much", excess) for excess in beyond)]


def _program_rows(plan: Plan, file: str) -> Iterator[tuple[str, str]]:
    yield "trained", f"{plan.model or 'the model that counts'}, as {plan.why}"
    if plan.rehearsal is None:
        if plan.loops:
            yield "loops", _place_list(plan.loops, file)
    else:
        yield from _stage_rows(plan.rehearsal, file)
    if plan.validates:
        yield "validation", WIDENED if plan.widens else KEPT
    if plan.seeds:
        yield "seeds", f"your own seeds are set too, after the grader's: {_place_list(plan.seeds, file)}"
    if plan.left_alone:
        places = [part.place for part in plan.left_alone]
        reasons = dict.fromkeys(part.reason for part in plan.left_alone)
        yield "left alone", f"{_place_list(places, file)}: {'; '.join(reasons)}"


def _stage_rows(rehearsal: Rehearsal, file: str) -> Iterator[tuple[str, str]]:
    shown = rehearsal.stages[:MOST_ROWS]
    for number, stage in enumerate(shown, start=1):
        yield f"stage {number}" if len(rehearsal.stages) > 1 else "epochs", stage_text(stage, file)
    if len(rehearsal.stages) > len(shown):
        yield "and", counted(len(rehearsal.stages) - len(shown), "further stage")
    if rehearsal.fault:
        where = f" ({rehearsal.where})" if rehearsal.where else ""
        yield "but", f"{rehearsal.fault}{where}"
    elif rehearsal.epochs is None:
        yield "and more", "the trial takes a long time, so the rest is not known in advance"
    elif len(rehearsal.stages) > 1:
        yield "epochs", f"{rehearsal.epochs} in all"
    if rehearsal.multiply_adds:
        yield "size", f"{rehearsal.multiply_adds / 1e6:.1f} million multiply-adds per image"
    if rehearsal.other_models:
        yield "also trained", f"{counted(rehearsal.other_models, 'other model')}: {NEEDED}"


def stage_text(stage: Stage, file: str) -> str:
    """`3 epochs in the loop at line 41: AdamW, learning rate 0.001 to 0.0001 by CosineAnnealingLR`."""
    first, last = f"{stage.first_rate:.4g}", f"{stage.last_rate:.4g}"
    rate = f"learning rate {first}" if first == last else f"learning rate {first} to {last}"
    if stage.schedule:
        rate = f"{rate} by {stage.schedule}"
    changed = ", changed with each batch" if stage.per_batch else ""
    learned = f", {quantity(stage.learned)} numbers learn" if stage.learned else ""
    how = f"{stage.optimizer or 'an optimizer'}, {rate}{changed}{learned}"
    epochs = counted(stage.epochs, "epoch")
    if stage.loop is None:
        return f"{epochs}: {how}"
    if stage.called is None:
        return f"{epochs} in the loop at {within(stage.loop, file)}: {how}"
    return (
        f"{epochs} in the loop at {within(stage.loop, file)}, called at {within(stage.called, file)}: {how}"
    )


def _place_list(places: Sequence[Place], file: str) -> str:
    return listed([within(place, file) for place in dict.fromkeys(places)])


# --- training advice -------------------------------------------------------------------------------------


_RISE = 0.01  # of accuracy over the last quarter of the epochs: still learning
_OVERFIT = 1.15  # last test loss over the lowest one
# transforms of torchvision that change an image at random, and mixtures of images
_AUGMENTATION = re.compile(r"Random|Jitter|Augment|AugMix|Erasing|Elastic|Mix[Uu]p|Cut[Mm]ix|flip|rot90")
_OF_BATCHES = re.compile(r"\b(augment\w*|mixup|cutmix)\(|\.flip\(|rot90\(", re.IGNORECASE)
_WARMUP = re.compile(r"[Ww]arm|OneCycle|LinearLR|CyclicLR")
BY_CALL = "`grader train` makes the same call on your own machine: compare what it shows after each change."


@dataclass(frozen=True)
class TrainingText:
    """What is wrong with a training run, one thing to try, and the place to change."""

    message: str
    hint: str
    where: str


def training_fix_text(
    item: RubricItem, evidence: Evidence, most_epochs: int | None = None
) -> TrainingText | None:
    """What could bring back training points, or None when the run says nothing about the student's code.

    Args:
        most_epochs: How many are allowed; None: as many as the time allows.
    """
    training = evidence.training
    if training.outcome in (TrainingOutcome.FAILED, TrainingOutcome.DIVERGED):
        hint = (
            "Try a lower learning rate, and warm it up over the first epochs."
            if training.outcome is TrainingOutcome.DIVERGED
            else "Run one epoch on a few batches of your own data until it goes through."
        )
        return TrainingText(training.reason, hint, training.where)
    if training.outcome is not TrainingOutcome.COMPLETED or training.measured is None:
        return None
    words = _words_of(item, training)
    asked = [f"The assignment asks for {words.round(item.threshold)}."] if item.threshold else []
    best = 0 if item.scale.lower_is_better else -1
    full = (
        f"Full points begin at {words.round(item.breakpoints[best][0])}."
        if item.breakpoints
        else f"It is worth {points(item.points)} points."
    )
    low, high = training.interval or (training.measured, training.measured)
    reach = f" (95 % interval {words.value(low)} to {words.value(high)})" if low < high else ""
    value = words.value(training.measured)
    measured = f"{value} {words.what}" if words.is_accuracy else f"{words.what} {value}{words.direction}"
    message = " ".join([f"The grader measured {measured}{reach}.", *asked, full])
    if not training.epochs:
        return TrainingText(message, BY_CALL, training.where)
    hint, name = _advice(training.epochs, most_epochs, _already_used(evidence))
    places = {value.name: str(value.place) for value in evidence.tuned}
    return TrainingText(message, hint, places.get(name, ""))


def _words_of(item: RubricItem, training: Training) -> MeasuredWords:
    if training.value is None:
        return MeasuredWords()
    return MeasuredWords((item.measured or "").replace("_", " "), is_accuracy=False, scale=item.scale)


@dataclass(frozen=True)
class _AlreadyUsed:
    """What a homework already does, and need not be advised to try."""

    schedule: bool
    warmup: bool
    augmentation: bool
    dropout: bool
    decay: bool


def _already_used(evidence: Evidence) -> _AlreadyUsed:
    values: dict[str, str] = {}
    for value in evidence.tuned:
        values[value.name] = f"{values.get(value.name, '')} {value.value}"
    rehearsal = evidence.plan.rehearsal if evidence.plan is not None else None
    stages = rehearsal.stages if rehearsal is not None else ()
    schedules = " ".join([values.get("scheduler", ""), *(stage.schedule for stage in stages)])
    rising = any(stage.last_rate > stage.first_rate for stage in stages)
    return _AlreadyUsed(
        schedule=bool(schedules.strip()) or any(stage.first_rate != stage.last_rate for stage in stages),
        warmup=rising or bool(_WARMUP.search(schedules)),
        augmentation=bool(_AUGMENTATION.search(values.get("transform", ""))) or _varies_batches(evidence),
        dropout=any(_is_positive(values.get(name, "")) for name in ("dropout", "emb_dropout")),
        decay=_is_positive(values.get("weight_decay", "")),
    )


def _varies_batches(evidence: Evidence) -> bool:
    """Whether the source changes images outside a transform, such as by flipping or mixing a batch."""
    return any(_OF_BATCHES.search(text) for text in (evidence.source or {}).values())


def _is_positive(values: str) -> bool:
    """Whether one of the values is not zero."""
    return any(set(value) - set("0.-e+") for value in values.split())


def _advice(epochs: tuple[Epoch, ...], most_epochs: int | None, has: _AlreadyUsed) -> tuple[str, str]:
    """One thing to try that the curves suggest and the code lacks, and the tuned value that it concerns."""
    losses = [epoch.test_loss for epoch in epochs if math.isfinite(epoch.test_loss)]
    if len(losses) >= 4 and losses[-1] > _OVERFIT * min(losses):
        best = 1 + losses.index(min(losses))
        absent = [
            *([] if has.augmentation else ["augmentation (flips, small shifts)"]),
            *([] if has.dropout else ["dropout"]),
            *([] if has.decay else ["weight decay"]),
        ]
        what = " or ".join(absent) or "fewer epochs, a smaller model, or more of the augmentation"
        return (
            f"Your test loss is lowest after epoch {best} and rises from there, which is overfitting: "
            f"try {what}.",
            "transform",
        )
    quarter = max(1, len(epochs) // 4)
    if len(epochs) <= quarter or epochs[-1].test_accuracy - epochs[-1 - quarter].test_accuracy > _RISE:
        warmup = "" if has.warmup else " after a short warm-up"
        if most_epochs is not None and len(epochs) >= most_epochs:
            return (
                f"The accuracy was still rising after the {most_epochs} epochs that are allowed: try "
                f"a higher learning rate{warmup}, or smaller batches.",
                "learning_rate",
            )
        falling = (
            ", over which your schedule is spread"
            if has.schedule
            else ", with a learning rate that falls toward the end (cosine decay)"
        )
        return f"The accuracy was still rising when training ended: try more epochs{falling}.", "epochs"
    warmup = "" if has.warmup else " with a few epochs of warm-up"
    also = "a larger model" if has.augmentation else "augmentation of the training images"
    return f"The accuracy has leveled off: try another learning rate{warmup}, and {also}.", "learning_rate"


def outcome_sentence(training: Training, call: TrainingCall | None = None) -> str:
    """How training ended, in a sentence for the student.

    Args:
        call: How it was trained, where that was by a call.
    """
    if call is not None:
        return _outcome_of_call(training, call)
    done = len(training.epochs)
    planned = training.planned_epochs
    count = f"{done} of {planned} {'epoch' if planned == 1 else 'epochs'}" if planned else _epoch_count(done)
    match training.outcome:
        case TrainingOutcome.COMPLETED:
            took = f"{count} in {duration(training.seconds)}" if training.seconds else count
            how = "with your own train_epoch and settings" if training.rebuilt else "by your own loop"
            return f"The grader trained your model for {took}, {how}."
        case TrainingOutcome.FAILED:
            return f"Training stopped in your code after {count}: {training.reason}"
        case TrainingOutcome.DIVERGED:
            return f"Training diverged after {count}: {training.reason}"
        case TrainingOutcome.BUDGET:
            return (
                f"The grader's limit stopped training after {count}. That does not mean zero: a person "
                f"decides these points. {training.reason}"
            ).strip()
        case TrainingOutcome.NOT_RUN:
            return training.reason or "Training was not part of this run."
        case TrainingOutcome.UNKNOWN:
            return f"A person looks at the training: {training.reason}"


def _epoch_count(number: int) -> str:
    return f"{number} {'epoch' if number == 1 else 'epochs'}"


def _outcome_of_call(training: Training, call: TrainingCall) -> str:
    call_words = call_in_words(call)
    match training.outcome:
        case TrainingOutcome.COMPLETED:
            return f"The grader trained your model by {call_words} in {duration(training.seconds)}."
        case TrainingOutcome.FAILED | TrainingOutcome.DIVERGED:
            return f"Training by {call_words} gave no result: {training.reason}"
        case TrainingOutcome.BUDGET:
            return (
                f"The grader's limit stopped {call_words}. That does not mean zero: "
                f"a person decides these points. {training.reason}"
            )
        case TrainingOutcome.NOT_RUN:
            return training.reason or "Training was not part of this run."
        case TrainingOutcome.UNKNOWN:
            return f"A person looks at the training by {call_words}: {training.reason}"
