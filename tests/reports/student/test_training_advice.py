from dataclasses import replace

import pytest

from grader.domain.analyzed_program import Place, TunedValue
from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.reports.student.training_texts import outcome_sentence, training_fix_text


def curve(accuracies, losses):
    return tuple(
        Epoch(number, 1.0, loss, accuracy, 0.001, 1.0)
        for number, (accuracy, loss) in enumerate(zip(accuracies, losses, strict=True), 1)
    )


@pytest.mark.parametrize(
    ("epochs", "hint", "where"),
    [
        (curve([0.2, 0.3, 0.4, 0.5], [2.0, 1.8, 1.6, 1.4]), "still rising", "homework.py:58"),
        (curve([0.2, 0.5, 0.5, 0.5], [2.0, 1.0, 1.5, 1.9]), "lowest after epoch 2", ""),
        (curve([0.2, 0.5, 0.5, 0.5], [2.0, 1.0, 1.0, 1.0]), "leveled off", "homework.py:57"),
        (curve([0.2], [2.0]), "more epochs", "homework.py:58"),
    ],
)
def test_advice_follows_the_curves(assignment, examples, epochs, hint, where):
    evidence = examples.base("1", assignment)
    evidence = replace(evidence, training=replace(evidence.training, epochs=epochs, accuracy=0.5))
    text = training_fix_text(assignment.measured_item, evidence)
    assert hint in text.hint
    assert text.where == where


RISES = curve([0.2, 0.3, 0.4, 0.5], [2.0, 1.8, 1.6, 1.4])
OVERFITS = curve([0.2, 0.5, 0.5, 0.5], [2.0, 1.0, 1.5, 1.9])
LEVEL = curve([0.2, 0.5, 0.5, 0.5], [2.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("epochs", "tuned", "absent"),
    [
        (RISES, {"scheduler": "CosineAnnealingLR(optimizer, 30)"}, "cosine"),
        (OVERFITS, {"transform": "RandomHorizontalFlip()"}, "flips"),
        (OVERFITS, {"dropout": "0.1"}, "dropout"),
        (OVERFITS, {"weight_decay": "0.05"}, "weight decay"),
        (LEVEL, {"scheduler": "OneCycleLR(optimizer, 0.1)"}, "warm-up"),
        (LEVEL, {"transform": "RandomRotation(10)"}, "augmentation"),
    ],
)
def test_what_is_there_already_is_not_advised(assignment, examples, epochs, tuned, absent):
    evidence = examples.base("1", assignment)
    evidence = replace(evidence, training=replace(evidence.training, epochs=epochs, accuracy=0.5), source={})
    line = Place("homework.py", 3)
    bare = replace(evidence, tuned=())
    has = replace(evidence, tuned=tuple(TunedValue(name, value, line) for name, value in tuned.items()))
    assert absent in training_fix_text(assignment.measured_item, bare).hint
    assert absent not in training_fix_text(assignment.measured_item, has).hint


def test_batches_that_are_flipped_are_augmented(assignment, examples):
    evidence = examples.base("1", assignment)
    training = replace(evidence.training, epochs=LEVEL, accuracy=0.5)
    source = {"homework.py": "images = torch.where(half(), images.flip(-1), images)"}
    evidence = replace(evidence, training=training, source=source, tuned=())
    assert "augmentation" not in training_fix_text(assignment.measured_item, evidence).hint


def test_no_more_epochs_are_advised_than_are_allowed(assignment, examples):
    evidence = examples.base("1", assignment)
    epochs = curve([0.2, 0.3, 0.4, 0.5], [2.0, 1.8, 1.6, 1.4])
    evidence = replace(evidence, training=replace(evidence.training, epochs=epochs, accuracy=0.5))
    text = training_fix_text(assignment.measured_item, evidence, most_epochs=4)
    assert "4 epochs that are allowed" in text.hint
    assert "more epochs" not in text.hint


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (TrainingOutcome.FAILED, "stopped in your code after 1 of 3 epochs: It raised."),
        (TrainingOutcome.DIVERGED, "diverged after 1 of 3 epochs: It raised."),
        (TrainingOutcome.BUDGET, "That does not mean zero: a person decides"),
        (TrainingOutcome.UNKNOWN, "A person looks at the training: It raised."),
        (TrainingOutcome.NOT_RUN, "It raised."),
        (TrainingOutcome.COMPLETED, "trained your model for 1 of 3 epochs"),
    ],
)
def test_every_outcome_has_its_sentence(outcome, says):
    training = Training(outcome, reason="It raised.", epochs=curve([0.2], [2.0]), planned_epochs=3)
    assert says in outcome_sentence(training)
    assert outcome_sentence(Training(TrainingOutcome.NOT_RUN)) == "Training was not part of this run."
