"""Questions about a student's own training: curves, confusions, chosen values, and what checks found.

A question is made only where the record shows what it speaks of: a loss that rises, an accuracy that still
grows, a class that is taken for another, a value that the source states. It never judges a training.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from markupsafe import Markup

from grader.domain.analyzed_program import Claim, place_of
from grader.domain.assignment import Assignment
from grader.domain.evidence import Epoch, Evidence, Finding, FindingKind, Status, Training
from grader.domain.formatting import as_code, counted, named, percent, quantity, quoted
from grader.domain.program_run import Stage
from grader.language import ENGLISH, Language
from grader.reports.measured_words import measured_words
from grader.reports.oral.chosen_questions import MOST_LINES, NO_CHART, QuestionKind, SheetQuestion
from grader.reports.oral.own_code import code_beside
from grader.reports.student.training_charts import accuracy_curve, loss_curve
from grader.reports.whole_class.class_charts import claim_apart

RISES = 1.1  # the last loss, in terms of the lowest one
GROWS = 0.02  # over the last quarter of the epochs
FALLS = 0.08  # from one epoch to the next
GAP = 0.10  # between images that were trained on and hidden ones
_MESSAGE = 240  # characters of a check's message
_FEW_EPOCHS = 4

_OVERFITTING_NOTE = (
    "Overfitting: the model grows surer of what it knows by heart, so that its mistakes cost more; the "
    "accuracy may rise all the same. Augmentation, dropout, weight decay, a smaller model or fewer epochs, "
    "and what each would do to the curve."
)
_GROWING_NOTE = (
    "It was stopped before it had learned what it can: more epochs, with the schedule spread over them, or a "
    "higher rate with a warm-up. They say what the curve would look like, and that one seed proves little."
)
_JUMP_NOTE = (
    "A high learning rate, a small test set, or a schedule that begins anew. They know how to find out: "
    "another seed, a lower rate, the curve of the training loss."
)
_GAP_NOTE = (
    "The difference between what was learned by heart and what is understood. They name what narrows it, and "
    "know that a small gap can also mean that nothing much was learned."
)
_CONFUSION_NOTE = (
    "They have looked at such images: what the two have in common, what the size or the transform hides, how "
    "many of each there are. They can read rows and columns, and propose something that would separate the "
    "two."
)
_SCHEDULE_NOTE = (
    "Large steps find the region, small ones the minimum; a warm-up keeps the first steps from doing harm. "
    "With the first value throughout, the loss stays high or jumps. They know how often their schedule takes "
    "a step."
)
_RATE_NOTE = (
    "Ten times as much diverges or jumps, a tenth learns too little in the same epochs. They have seen one "
    "of these themselves, and say in which order they tried values."
)
_BATCH_NOTE = (
    "Fewer and less noisy steps per epoch, more memory, and usually a higher learning rate; batch "
    "normalization changes as well. They know how many steps an epoch of theirs has."
)
_TRANSFORM_NOTE = (
    "They tell what only fits the model's input from what varies the images, why the latter is for training "
    "alone, and which variation would change the label in this data."
)
_VALUE_NOTE = (
    "They name values that they tried, with results that fit the curve. Somebody who took the value over "
    "knows no other."
)
_EARLIER_NOTE = (
    "They remember the cause, not only the line, and why the code seemed right before. An answer that only "
    "repeats the message says little."
)
_NOW_NOTE = (
    "They can say in their own words what the message means, show where it happens, and correct it here. "
    "What it costs is not the subject."
)


def result_questions(
    assignment: Assignment, evidence: Evidence, language: Language = ENGLISH
) -> Iterator[SheetQuestion]:
    """Questions about the curves and the confusions of each trained model."""
    for measure in assignment.measures if assignment.data is not None else ():
        training = evidence.of_measure(measure.id).training
        model = measured_words(assignment, measure).model
        whose = f"{model}: " if model else ""
        for question in (*_curve_questions(training, language), *_hidden_image_questions(training)):
            yield replace(question, id=f"{measure.id} {question.id}", text=f"{whose}{question.text}")


def _curve_questions(training: Training, language: Language) -> Iterator[SheetQuestion]:
    epochs = training.epochs
    losses = [(epoch.number, epoch.test_loss) for epoch in epochs if math.isfinite(epoch.test_loss)]
    if len(losses) >= _FEW_EPOCHS:
        best, lowest = min(losses, key=lambda pair: pair[1])
        last, highest = losses[-1]
        if best < last and highest > RISES * lowest:
            text = (
                f"On hidden images, your loss is lowest after epoch {best} ({quantity(lowest)}) and is "
                f"{quantity(highest)} after epoch {last}. Why does it rise while training goes on, and what "
                "would you change?"
            )
            yield _result("loss", "curves", text, _OVERFITTING_NOTE, loss_curve(epochs, language))
    if len(epochs) >= _FEW_EPOCHS:
        yield from _accuracy_questions(epochs, language)


def _accuracy_questions(epochs: Sequence[Epoch], language: Language) -> Iterator[SheetQuestion]:
    last, before = epochs[-1], epochs[-1 - max(1, len(epochs) // 4)]
    chart = accuracy_curve(epochs, None, language=language)
    if last.test_accuracy - before.test_accuracy > GROWS:
        text = (
            f"On hidden images, your accuracy is {percent(before.test_accuracy)} after epoch {before.number} "
            f"and {percent(last.test_accuracy)} after epoch {last.number}, the last one. What would you try "
            "next, and how would the curve show whether it helped?"
        )
        yield _result("growth", "curves", text, _GROWING_NOTE, chart)
    falls = [(one.test_accuracy - two.test_accuracy, two) for one, two in pairwise(epochs)]
    drop, at = max(falls, key=lambda fall: fall[0])
    if drop > FALLS:
        text = (
            f"On hidden images, your accuracy falls by {percent(drop)} with epoch {at.number}. What can "
            "cause such a fall, and how would you find out which cause it was?"
        )
        yield _result("jump", "curves", text, _JUMP_NOTE, chart)


def _hidden_image_questions(training: Training) -> Iterator[SheetQuestion]:
    seen, hidden = training.seen_accuracy, training.accuracy
    if seen is not None and hidden is not None and seen - hidden > GAP:
        text = (
            f"Your model is right for {percent(seen)} of images that it was trained on, and for "
            f"{percent(hidden)} of hidden ones. Where does the difference come from, and what would narrow "
            "it?"
        )
        yield _result("gap", "gap", text, _GAP_NOTE)
    mistakes = [
        (count, row, column)
        for row, counts in enumerate(training.confusion)
        for column, count in enumerate(counts)
        if row != column and count and column < len(training.confusion)
    ]
    if mistakes:
        count, row, column = max(mistakes, key=lambda mistake: mistake[0])
        true, taken = (quoted(training.class_name(index)) for index in (row, column))
        text = (
            f"Your model takes {count} of {sum(training.confusion[row])} hidden images of {true} for "
            f"{taken}, its most frequent mistake; the other way round it is "
            f"{training.confusion[column][row]} of {sum(training.confusion[column])}. What have the two in "
            "common for it, and what could separate them?"
        )
        yield _result("confusion", "confusion", text, _CONFUSION_NOTE)


def _result(name: str, topic: str, text: str, note: str, chart: Markup = NO_CHART) -> SheetQuestion:
    return SheetQuestion(QuestionKind.RESULT, name, topic, text, note, chart=chart)


# --- chosen values ---------------------------------------------------------------------------------------


def choice_questions(evidence: Evidence) -> Iterator[SheetQuestion]:
    """Questions about the values that the student chose."""
    stages = evidence.plan.rehearsal.stages if evidence.plan.rehearsal is not None else ()
    if stages:
        yield _about_stage(stages[-1])
    for value in evidence.chosen:
        shown, where = as_code(value.value), str(value.place)
        lines = code_beside(evidence, value.place, value.place.line)
        if value.name in ("transform", "test_transform"):
            if value.name == "transform":
                text = (
                    f"Your training images go through {shown}. Which of these steps vary the images and "
                    "which only fit them to the model, and why do you treat test images as you do?"
                )
                yield SheetQuestion(QuestionKind.CHOICE, "transform", "transform", text, _TRANSFORM_NOTE)
            continue
        if value.name == "batch_size":
            text = (
                f"Your batches have {shown} images. What changes with four times as many: the steps of an "
                "epoch, the noise of the gradient, memory, the learning rate that fits?"
            )
            note = _BATCH_NOTE
        elif value.name == "learning_rate":
            text = (
                f"Your learning rate is {shown}. What would you see in the loss with ten times as much, and "
                "what with a tenth?"
            )
            note = _RATE_NOTE
        else:
            text = (
                f"You chose {named(value.name)} as {shown}. Which other values did you try, and what did "
                "they do to the accuracy and the time?"
            )
            note = _VALUE_NOTE
        yield SheetQuestion(
            QuestionKind.CHOICE, f"value {value.name}", f"value {value.name}", text, note, lines, where
        )


def _about_stage(stage: Stage) -> SheetQuestion:
    first, last = quantity(stage.first_rate), quantity(stage.last_rate)
    if stage.schedule and stage.first_rate != stage.last_rate:
        text = (
            f"You train for {counted(stage.epochs, 'epoch')} with {named(stage.optimizer)} and "
            f"{named(stage.schedule)}: the learning rate is {first} after the first epoch and {last} after "
            "the last. Why should it change, and what would you see if it stayed at the first value?"
        )
        return SheetQuestion(QuestionKind.CHOICE, "stage", "value learning_rate", text, _SCHEDULE_NOTE)
    text = (
        f"You train for {counted(stage.epochs, 'epoch')} with {named(stage.optimizer)} at a learning rate of "
        f"{first}. What would you see in the loss with ten times as much, and what with a tenth?"
    )
    return SheetQuestion(QuestionKind.CHOICE, "stage", "value learning_rate", text, _RATE_NOTE)


# --- what checks found -----------------------------------------------------------------------------------


def error_questions(
    evidence: Evidence, earlier: Sequence[Evidence], claim: Claim | None
) -> Iterator[SheetQuestion]:
    """Questions about mistakes that checks found, in earlier submissions and now, and about a claim.

    Args:
        earlier: The evidence about earlier submissions of the student, oldest first.
        claim: The accuracy that the student claims.
    """
    now = {finding.check: finding.status for finding in evidence.findings}
    for number, before in enumerate(earlier, 1):
        for finding in _mistakes(before):
            if now.get(finding.check) is Status.PASSED:
                text = (
                    f"In your submission number {number}, a check of {named(finding.component)} said: "
                    f"{quoted(finding.message, _MESSAGE)} What was the mistake, and which line did you "
                    "change?"
                )
                topic = f"check {finding.component}"
                yield SheetQuestion(QuestionKind.ERROR, f"before {finding.check}", topic, text, _EARLIER_NOTE)
    for finding in _mistakes(evidence):
        text = (
            f"A check of {named(finding.component)} says: {quoted(finding.message, _MESSAGE)} What does that "
            "mean, and how would you correct it?"
        )
        place = place_of(finding.where)
        lines = code_beside(evidence, place, place.line + MOST_LINES - 1) if place is not None else ()
        where = finding.where if lines else ""
        topic = f"check {finding.component}"
        yield SheetQuestion(QuestionKind.ERROR, f"now {finding.check}", topic, text, _NOW_NOTE, lines, where)
    measured = evidence.training.accuracy
    if claim is not None and measured is not None and claim_apart(claim.accuracy, measured):
        text = (
            f"You report an accuracy of {percent(claim.accuracy)}; on hidden images, your training reaches "
            f"{percent(measured)}. How did you measure, and where may the difference come from?"
        )
        note = (
            f"The claim is from {quoted(claim.source)}. Other weights, another split, an epoch that the test "
            "images chose, outputs of other code: they know which, and can show it."
        )
        yield SheetQuestion(QuestionKind.ERROR, "claim", "claim", text, note)


def _mistakes(evidence: Evidence) -> list[Finding]:
    """The findings that say what is wrong in something that was written; folded ones say nothing new."""
    return [
        finding
        for finding in evidence.findings
        if finding.status is Status.FAILED
        and finding.because is None
        and finding.message
        and finding.kind is not FindingKind.NOT_IMPLEMENTED
    ]
