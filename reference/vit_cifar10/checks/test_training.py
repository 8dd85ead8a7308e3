"""Schedule, train_epoch, evaluate and fit, each by itself."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import (
    Fake,
    Mismatch,
    Undecided,
    batches,
    numbered_images,
    trainable_data,
)

NAMES = ("a", "b", "c", "d")
SIZES = (8, 8, 8, 5)


# --- the schedule -----------------------------------------------------------------------------------------


@pytest.mark.explains(
    "schedule_is_a_share", "schedule_warms_up", "schedule_falls_by_half_a_cosine", "schedule_ends_at_zero"
)
@pytest.mark.component("warmup_cosine")
def test_schedule_rises_and_falls(student, reference):
    """Linear from 0 to 1 over the warm-up, half a cosine to 0 afterwards, and 0 from the end on."""
    first, rest, short, none = (int(torch.randint(40, (1,), generator=student.random)) for _ in range(4))
    warmup = 6 + first % 10
    sizes = ((warmup, warmup + 20 + rest), (0, 12 + none), (3 + short % 3, 9 + short % 5))
    for warmup, total in sizes:
        steps = [*range(total + 1), total + 7]
        found = [student.call("warmup_cosine", step, warmup, total).returned.number() for step in steps]

        def agree(one, other):
            return np.allclose(one, other, atol=1e-6)

        if agree(found, [reference.warmup_cosine(step, warmup, total) for step in steps]):
            continue
        reference.oracle.name(
            reference,
            "warmup_cosine",
            found,
            lambda made, steps=steps, sizes=(warmup, total): [made(step, *sizes) for step in steps],
            agree,
        )
        expected = [reference.warmup_cosine(step, warmup, total) for step in steps]
        pairs = zip(steps, found, expected, strict=True)
        step = next(step for step, one, other in pairs if abs(one - other) > 1e-6)
        raise Mismatch(
            f"warmup_cosine({step}, {warmup}, {total}) is {found[steps.index(step)]:.4f}; it should be "
            f"{expected[steps.index(step)]:.4f}."
        )


# --- an epoch ---------------------------------------------------------------------------------------------


def trained(student):
    """(data, run) of an epoch of which all is known."""

    def make():
        data = trainable_data(NAMES, SIZES, features=5, seed=student.next_seed())
        try:
            return data, student.run("train_epoch", data)
        except Mismatch as error:
            return data, error

    data, run = student.shared("train_epoch", make)
    if isinstance(run, Mismatch):
        raise Mismatch(run.message, hint=run.hint, diagnosis=run.diagnosis, where=run.where)
    return data, run


@pytest.mark.explains("epoch_takes_a_step_for_each_batch", "epoch_clears_the_gradients")
@pytest.mark.component("train_epoch")
@pytest.mark.weight(3)
def test_each_batch_is_a_step(student, reference):
    """Each batch gets one step along its own gradient of the criterion, and one step of the schedule."""
    data, run = trained(student)
    if run.steps == 0:
        raise reference.named("epoch_without_step")
    if run.steps != len(SIZES):
        raise Mismatch(f"For {len(SIZES)} batches, the optimizer takes {run.steps} steps.")
    own = []
    for (scores, labels), size in zip(reference.oracle.of_batches(data, run), SIZES, strict=True):
        start = sum(len(each) for each, _ in own)
        features = torch.from_numpy(data.arrays["features"])[start : start + size]
        slope = (scores.softmax(dim=1) - F.one_hot(labels, len(NAMES))) / size
        own.append((features, features.T @ slope))
    used = [torch.from_numpy(each) for each in run.arrays["step_gradients"]]
    right = [gradient for _, gradient in own]
    if not all(alike(a, b) for a, b in zip(used, right, strict=True)):
        summed = [sum(right[: n + 1]) for n in range(len(right))]
        if alike(used[1], used[0] + right[1]) or alike(used[1], summed[1]):
            raise reference.named("epoch_without_zero_grad")
        raise Mismatch("The optimizer's steps do not follow the criterion's gradients of their own batches.")
    schedule = run.events.count("schedule")
    if schedule == 1:
        raise reference.named("schedule_per_epoch")
    if schedule != len(SIZES):
        raise (
            reference.named("schedule_not_stepped")
            if not schedule
            else Mismatch(f"For {len(SIZES)} batches, the schedule takes {schedule} steps.")
        )
    if run.events.index("schedule") < run.events.index("step"):
        raise reference.named("schedule_before_the_step")


def alike(used, expected):
    """Whether a step follows a gradient, or what clipping leaves of it: all or the largest numbers less."""
    size = float(expected.abs().max())
    if torch.allclose(used, expected, rtol=0, atol=1e-4):
        return True
    factor = float((used * expected).sum() / expected.pow(2).sum().clamp(min=1e-12))
    largest = float(used.abs().max())
    clipped = (factor * expected, expected.clamp(-largest, largest))
    return 1e-3 < factor < 1.001 and any(float((used - each).abs().max()) < 1e-3 * size for each in clipped)


@pytest.mark.shows("epoch_trains_in_training_mode")
@pytest.mark.component("train_epoch")
@pytest.mark.weight(1)
def test_epoch_runs_in_training_mode(student, reference):
    """The model is in training mode."""
    _, run = trained(student)
    if not all(forward.training for forward in run.forwards):
        raise reference.named("epoch_in_evaluation_mode")


@pytest.mark.explains("epoch_returns_two_numbers", "epoch_means_over_images")
@pytest.mark.component("train_epoch")
@pytest.mark.weight(2)
@pytest.mark.because("each_batch_is_a_step")
def test_epoch_tells_means_over_images(student, reference):
    """The mean loss and the accuracy are over images, as they were when each batch was trained on."""
    data, run = trained(student)
    if run.steps != len(SIZES):
        raise Mismatch(f"For {len(SIZES)} batches, the optimizer takes {run.steps} steps.")
    if len(run.returned) != 2:
        raise Mismatch(
            f"train_epoch returns {len(run.returned)} numbers; it should return two: mean loss and accuracy."
        )
    found = list(reference.oracle.of_batches(data, run))
    losses = [F.cross_entropy(scores, labels).item() for scores, labels in found]
    hits = [(scores.argmax(dim=1) == labels).sum().item() for scores, labels in found]
    count = sum(SIZES)
    loss = sum(loss * size for loss, size in zip(losses, SIZES, strict=True)) / count
    accuracy = sum(hits) / count
    if abs(run.returned[0] - loss) < 1e-4 and abs(run.returned[1] - accuracy) < 1e-6:
        return
    if abs(run.returned[0] - sum(losses) / len(losses)) < 1e-4 and abs(run.returned[1] - accuracy) < 1e-6:
        raise reference.named("epoch_means_batches")
    if abs(run.returned[0] - losses[-1]) < 1e-4:
        raise reference.named("epoch_tells_the_last_batch")
    if abs(run.returned[1] - 100 * accuracy) < 1e-3:
        raise reference.named("epoch_accuracy_in_percent")
    stepped = reference.oracle.of_batches(data, run, after=True)
    later = sum(F.cross_entropy(scores, labels, reduction="sum").item() for scores, labels in stepped)
    if abs(run.returned[0] - later / count) < 1e-4:
        raise reference.named("epoch_measures_after_the_step")
    wrong = "loss" if abs(run.returned[0] - loss) >= 1e-4 else "accuracy"
    raise Mismatch(f"The {wrong} that train_epoch returns is not the mean over all images of the epoch.")


@pytest.mark.component("train_epoch")
@pytest.mark.weight(1)
@pytest.mark.because("each_batch_is_a_step")
def test_epoch_works_without_a_schedule(student):
    """With scheduler=None no schedule is needed."""
    data = trainable_data(NAMES, SIZES, features=5, seed=student.next_seed())
    run = student.run("train_epoch", data, keywords={"scheduler": None})
    if run.steps != len(SIZES):
        raise Mismatch(f"With scheduler=None, {len(SIZES)} batches have {run.steps} steps of the optimizer.")


# --- evaluation -------------------------------------------------------------------------------------------


def evaluated(student):
    """(scores, labels, outcome) of an evaluation of rigged images, in batches of unequal size."""
    count, classes = 21, 4
    scores = 2 * student.tensor(count, classes)
    labels = torch.randint(0, classes, (count,), generator=student.random)
    images = torch.from_numpy(numbered_images(count, student.next_seed(), (3, 16, 16)))

    def criterion(given, targets):
        return F.cross_entropy(torch.as_tensor(given).float(), torch.as_tensor(targets))

    outcome = student.call(
        "evaluate",
        Fake.rows(scores),
        batches(images, labels, [8, 8, 5]),
        Fake.callback(criterion, kind="function", name="criterion"),
        torch.device("cpu"),
    )
    return scores, labels, outcome


@pytest.mark.explains(
    "evaluate_returns_a_dictionary", "evaluate_gives_probabilities", "evaluate_means_over_images"
)
@pytest.mark.component("evaluate")
@pytest.mark.weight(3)
def test_evaluation_tells_all(student, reference):
    """loss and accuracy are means over images; the others are in the loader's order."""
    scores, labels, outcome = evaluated(student)
    count = len(labels)
    returned = outcome.returned
    targets = reference.oracle.numbers(returned.at("targets"), count)
    if not np.array_equal(targets, labels.numpy()):
        raise Mismatch("'targets' are not the labels of all images in the loader's order.")
    shares = torch.from_numpy(returned.at("probabilities").array(count, scores.shape[1])).float()
    if not torch.allclose(shares, scores.softmax(dim=1), atol=1e-4):
        if torch.allclose(shares, scores, atol=1e-4):
            raise reference.named("evaluate_gives_logits")
        if torch.allclose(shares, scores.log_softmax(dim=1), atol=1e-4):
            raise reference.named("evaluate_gives_log_probabilities")
        raise Mismatch("'probabilities' are not the softmax of the model's scores.")
    if not np.array_equal(
        reference.oracle.numbers(returned.at("predictions"), count), scores.argmax(dim=1).numpy()
    ):
        raise Mismatch("'predictions' are not the classes with the largest probabilities.")
    accuracy = (scores.argmax(dim=1) == labels).float().mean().item()
    found = returned.at("accuracy").number()
    if abs(found - accuracy) > 1e-5:
        if abs(found - 100 * accuracy) < 1e-3:
            raise reference.named("evaluate_accuracy_in_percent")
        raise Mismatch("'accuracy' is not the share of images that are predicted correctly.")
    loss = returned.at("loss").number()
    if abs(loss - F.cross_entropy(scores, labels).item()) < 1e-4:
        return
    parts = [
        F.cross_entropy(own, given).item()
        for own, given in zip(scores.split([8, 8, 5]), labels.split([8, 8, 5]), strict=True)
    ]
    if abs(loss - sum(parts) / 3) < 1e-4:
        raise reference.named("evaluate_means_batches")
    if abs(loss - F.cross_entropy(scores.softmax(dim=1), labels).item()) < 1e-4:
        raise reference.named("evaluate_takes_the_loss_of_shares")
    raise Mismatch("'loss' is not the mean over all images.")


@pytest.mark.shows("evaluate_only_looks")
@pytest.mark.component("evaluate")
@pytest.mark.weight(1)
def test_evaluation_changes_nothing(student, reference):
    """The model is in evaluation mode, and no gradients are kept."""
    _, _, outcome = evaluated(student)
    calls = outcome.calls_of("model")
    if any(call.training for call in calls):
        raise reference.named("evaluate_in_training_mode")
    if any(call.gradients for call in calls):
        raise reference.named("evaluate_keeps_gradients")
    if not outcome.gradients_after:
        raise reference.named("evaluate_leaves_gradients_off")


# --- fit --------------------------------------------------------------------------------------------------

MODEL = "VisionTransformer"  # the class that a fit may look its settings up by


def fitted(student, reference, values, losses=()):
    """(epoch whose weights are left, outcome) of a fit whose validation accuracies are scripted.

    Args:
        losses: On the validation images; without, the less the more is right.
    """
    epochs, losses = len(values), losses or [1.0 - value for value in values]
    oracle, loaders = reference.oracle, reference.oracle.loaders(student)
    kept = {}

    def fit(answers):
        kept["model"] = student.keep(
            Fake.script([torch.zeros(2, 3)], name=MODEL, parameters={"head.weight": (3, 2)}), "fit"
        )
        fakes = {
            # training gets better and better: whoever chooses by it takes the last
            "train_epoch": Fake.script([(1.0 - n / 100, n / 100) for n in range(1, epochs + 1)], marks=True),
            "evaluate": Fake.script([oracle.evaluation(*each, 3) for each in answers]),
        }
        return student.call("fit", kept["model"], loaders, epochs, torch.device("cpu"), replace=fakes)

    # in evaluation, training images get worse and worse: whoever chooses by them takes the first
    training = [(n / 100, 1.0 - n / 100) for n in range(1, epochs + 1)]
    outcome = oracle.fitted(student, fit, list(zip(losses, values, strict=True)), training)
    if outcome is None:
        raise Undecided("fit measures something else each time, so a person has to look.")
    model = kept["model"]
    if not outcome.calls_of("train_epoch") and not outcome.calls_of(MODEL):
        raise Mismatch(
            f"fit(..., epochs={epochs}) trains nothing: it calls neither train_epoch nor the model.",
            hint="In each epoch, train_epoch with the training images, then evaluate with the others.",
        )
    if not outcome.calls_of("train_epoch") or not outcome.calls_of("evaluate"):
        raise reference.oracle.unlike_others("fit")
    left = student.component(model).weights()["head.weight"].unique().tolist()
    return left[0] if len(left) == 1 else math.nan, outcome


@pytest.mark.explains("fit_leaves_the_best_weights")
@pytest.mark.component("fit")
@pytest.mark.weight(4)
def test_fit_keeps_the_best_weights(student, reference):
    """The model is left with the weights of the best epoch by validation accuracy, the first of equals."""
    scripts = (([0.2, 0.6, 0.4, 0.5], 2), ([0.3, 0.7, 0.7, 0.1], 2), ([0.1, 0.2, 0.3], 3), ([0.9, 0.2], 1))
    for values, best in scripts:
        left, outcome = fitted(student, reference, values)
        if len(outcome.calls_of("train_epoch")) != len(values):
            raise Mismatch(
                f"fit(..., epochs={len(values)}) trains {len(outcome.calls_of('train_epoch'))} epochs."
            )
        if left == best:
            continue
        measured = outcome.calls_of("evaluate")
        if (
            left == 1
            and len(measured) > len(values)
            and any("train" in reference.oracle.loaders_of(student, call) for call in measured)
        ):
            raise reference.named("fit_chooses_by_training_images")
        if left == len(values) and values[-1] < max(values):
            source = "\n".join(student.program.source.values()).rpartition("def fit(")[2]
            raise reference.named(
                "fit_keeps_by_reference" if "load_state_dict" in source else "fit_never_restores"
            )
        if values[int(left) - 1] == max(values):
            raise reference.named("fit_keeps_the_last_of_equals")
        if values[int(left) - 1] == min(values):
            raise reference.named("fit_keeps_the_worst")
        raise Mismatch(
            f"With validation accuracies of {values}, the model is left with the weights of epoch {left:.0f}."
        )
    left, _ = fitted(student, reference, [0.2, 0.6, 0.4, 0.5], losses=[0.9, 0.8, 0.3, 0.7])
    if left == 3:
        raise reference.named("fit_chooses_by_loss")


@pytest.mark.explains("fit_measures_on_validation_images")
@pytest.mark.component("fit")
@pytest.mark.weight(1)
def test_fit_chooses_by_validation_images(student, reference):
    """train_epoch gets the training images, evaluate the validation images."""
    _, outcome = fitted(student, reference, [0.2, 0.4])
    oracle, given, epoch = reference.oracle, {1: set(), 2: set()}, 0
    for call in outcome.calls:
        epoch += call.fake == "train_epoch"
        if call.fake == "evaluate" and epoch:
            given.setdefault(epoch, set()).update(oracle.numbers_given(student, call))
    for numbers in given.values():
        if numbers & oracle.TRAINING and not numbers & oracle.VALIDATION:
            raise reference.named("fit_chooses_by_training_images")
    if not any(given.values()):
        raise Undecided("fit hands evaluate no images that can be read, so a person has to look.")
