"""train_epoch on a rigged model, loader and optimizer: every gradient that should be used is known."""

import numpy as np
import pytest

from grader.kit import Cause, Mismatch, Undecided, trainable_data

pytestmark = pytest.mark.component("train_epoch")


MIXED_AGAIN = 3  # times that an epoch is run anew where mixup may have drawn nothing but shares near 0 and 1


def trained(student, reference, class_names):
    """A short epoch: one for all checks that ask what is done with each batch.

    Raises:
        Mismatch: train_epoch raised, or does not exist.
    """

    def make():
        data = epoch_data(student, class_names)
        return data, attempted(student, data)

    data, run = student.shared("train_epoch", make)
    return reference.oracle.Epoch(data, raised(run))


def epoch_data(student, class_names):
    """What a short epoch is run on, drawn anew."""
    return trainable_data(class_names, (8, 8, 8, 8, 5), features=5, seed=student.next_seed())


def attempted(student, data):
    """The run, or the Mismatch with which it ended, to be kept."""
    try:
        return student.run("train_epoch", data)
    except Mismatch as error:
        return error


def raised(run):
    """A run that was kept.

    Raises:
        Mismatch: It ended with it.
    """
    if isinstance(run, Mismatch):
        raise Mismatch(run.message, hint=run.hint, diagnosis=run.diagnosis, where=run.where)
    return run


def no_gradients(run, reference):
    """What is wrong if the scores of some images got no gradient, or none that is finite; else None."""
    reached = run.arrays["logit_gradients"]
    if "backward" not in run.events:
        return reference.named("no_backward", seen=missing("No gradient reaches the scores of the model."))
    if np.isnan(reached).any():
        return reference.named("batches_left_out", seen=missing("Some images are never learned from."))
    if not np.isfinite(reached).all():
        return Mismatch(
            "The gradients that reach the scores of the model are not finite.",
            hint="Look for a logarithm or a quotient of 0 in the loss.",
            cause=Cause.NOT_FINITE,
            concerns="gradients",
        )
    return None


def missing(message):
    """That gradients are missing, by which further checks are folded under the first that says so."""
    return Mismatch(message, cause=Cause.NOT_CALLED, concerns="gradients")


def alike(used, expected):
    """Whether two gradients agree up to a factor of at most 1, or a largest value: clipping shrinks them."""
    size, largest = np.abs(expected).max(), np.abs(used).max()
    factor = (used * expected).sum() / max((expected * expected).sum(), 1e-12)
    if 1e-3 < factor < 1.001 and np.abs(used - factor * expected).max() < 1e-3 * size:
        return True
    clipped = np.clip(expected, -largest, largest)
    return bool(largest > 1e-3 * size and np.abs(used - clipped).max() < 1e-3 * size)


@pytest.mark.shows("train_epoch_clears_the_gradients")
@pytest.mark.explains("train_epoch_runs")
@pytest.mark.weight(3)
def test_train_epoch_steps_along_each_batch(student, reference, class_names):
    """Every optimizer step uses the gradient of its own batch, and of nothing else."""
    epoch = trained(student, reference, class_names)
    run = epoch.run
    if not run.forwards:
        raise reference.named("model_never_called", seen=reference.oracle.model_never_called(epoch))
    if epoch.is_moved_otherwise:
        raise reference.named("other_optimizer")
    if run.steps == 0:
        raise reference.named("no_step")
    if run.steps == 1 and len(run.forwards) == epoch.count:
        raise reference.named("step_once_per_epoch")
    if run.steps != epoch.count:
        raise Mismatch(
            f"For {epoch.count} batches the optimizer took {run.steps} steps.",
            hint="Every batch gets one step; look at break, return, continue and the indentation.",
            diagnosis="steps_skipped",
        )
    fault = no_gradients(run, reference)
    if fault is not None:
        raise fault
    expected = epoch.weight_gradients()
    used = list(run.arrays["step_gradients"])
    if all(alike(a, b) for a, b in zip(used, expected, strict=True)):
        require_kept_steps(epoch)
        return
    # never cleared; or cleared only where the first batch is reported
    sums = (np.cumsum(expected, axis=0), [expected[0], *np.cumsum(expected[1:], axis=0)])
    if any(all(map(alike, used, summed)) for summed in sums):
        raise reference.named("missing_zero_grad")
    if not any(gradient.any() for gradient in used):
        raise reference.named("zero_grad_before_step")
    late = (expected[:-1], np.cumsum(expected, axis=0)[:-1])  # cleared after the step, or never
    if not used[0].any() and any(all(map(alike, used[1:], earlier)) for earlier in late):
        raise reference.named("step_before_backward")
    if all(alike(a / 2, b) and not alike(a, b) for a, b in zip(used, expected, strict=True)):
        raise reference.named("backward_twice")
    if epoch.asks_for_small_weights():
        raise Undecided("the loss also asks for small weights; whether it may is a person's")
    raise Mismatch("The optimizer's steps do not follow the gradients of their own batches.")


def require_kept_steps(epoch):
    """Fail an epoch that undoes its steps; leave other weights than those of the last step to a person."""
    initial, left = epoch.data.arrays["weights"], epoch.run.arrays["weights"]
    if np.allclose(left, initial, rtol=0, atol=1e-7):
        raise Mismatch(
            "After the epoch, the model has the weights that it had before: what it learned is undone.",
            hint="The weights of the last step are those that stay.",
            look_for="load_state_dict() | copy_()",
        )
    if not np.allclose(
        left, epoch.weights_after_its_steps(), rtol=0, atol=1e-3 * np.abs(left - initial).max()
    ):
        raise Undecided("after the epoch, the model has other weights than its last step left")


@pytest.mark.weight(2)
@pytest.mark.shows("train_epoch_learns_the_labels")
def test_train_epoch_learns_from_the_labels(student, reference, class_names):
    """The loss is the cross-entropy between the model's scores and the labels, and alike for every batch."""
    epoch, oracle = trained(student, reference, class_names), reference.oracle
    if not epoch.run.forwards:
        raise oracle.model_never_called(epoch)
    fault = no_gradients(epoch.run, reference)
    if fault is not None:
        if epoch.run.steps == epoch.count:  # the check of the steps has named it
            raise Mismatch(fault.message, cause=fault.cause, concerns=fault.concerns)
        raise fault
    if is_mixed_up(student, class_names, epoch, oracle):
        return
    sizes = np.array(epoch.data.batch_sizes)
    factors = []
    for gradient, p, one_hot in epoch.batches:
        factor, smoothing, rest = oracle.cross_entropy_factor(gradient, p, one_hot)
        if rest > 1e-3 or not -0.001 < smoothing < 0.6 or factor <= 0:
            fault = loss_fault(student, reference, gradient, p, one_hot, factor if rest < 1e-3 else 0.0)
            if fault is None:
                return
            raise fault
        factors.append(factor)
    # a mean has the factor 1 / n; a sum trains as well, with another learning rate
    for expected in (1 / sizes[: len(factors)], np.ones_like(factors)):
        constant = np.array(factors) / expected
        if np.ptp(constant) < 1e-2 * constant.max():
            return
    raise reference.named("loss_scale_varies")


def is_mixed_up(student, class_names, epoch, oracle):
    """Whether every batch is mixed with its own images in another order, with a share of its own: mixup.

    Source: Zhang et al. (2018), section 2. A share near 0 or 1 alone may be labels in another order, so where
    there is no other, it is tried again: shares are drawn, orders are a mistake's own.
    """
    for again in range(1 + MIXED_AGAIN):
        if again:
            data = epoch_data(student, class_names)
            epoch = oracle.Epoch(data, student.run("train_epoch", data))
            if not epoch.are_gradients_finite:
                return False
        shares = [oracle.own_share(*batch) for batch in epoch.batches]
        if None in shares or min(shares) > 1 - 1e-4:
            return False
        if any(0.02 < share < 0.98 for share in shares):
            return True
    return False


def loss_fault(student, reference, gradient, p, one_hot, factor):
    """What to raise about a loss that is not a cross-entropy of the scores; None when it is right."""
    n = len(gradient)
    for scaled in (n * gradient, gradient):
        if factor < 0:
            return reference.named("loss_negated")
        if np.abs(scaled + one_hot).max() < 1e-3:
            if reference.oracle.returns_log_probabilities(student, one_hot.shape[1]):
                return None
            return reference.named("nll_of_scores")
        if np.abs(scaled - (p * one_hot).sum(axis=1, keepdims=True) * (p - one_hot)).max() < 1e-4:
            return reference.named("nll_of_probabilities")
        if np.abs(scaled - reference.oracle.softmax_twice(p, one_hot)).max() < 1e-4:
            return reference.named("softmax_before_loss")
        if np.abs((scaled + one_hot).sum(axis=0) - one_hot.sum(axis=0)).max() < 1e-3:
            return reference.named("loss_over_batch")
        others = p - scaled
        misplaced = ((others * one_hot).sum(axis=1) < 0.5).any()
        whole = np.abs(others.sum(axis=1) - 1).max() < 1e-3
        if misplaced and whole and (np.sort(others, axis=1)[:, -1] > 0.5).all():
            return reference.named("labels_misplaced")
    if np.abs(gradient).max() < 1e-9:
        return Mismatch("The loss does not depend on the model's scores.", diagnosis="constant_loss")
    if reference.oracle.is_unusual(gradient, p, one_hot):
        return Undecided("the loss is a variant of the cross-entropy; whether it may be one is a person's")
    return Mismatch(
        "The gradient that reaches the scores is not that of a cross-entropy between the scores and the "
        "labels, nor of one with weights, soft labels or a focus on hard images.",
        hint="loss = F.cross_entropy(model(images), labels): the scores as they are, the labels as numbers.",
        diagnosis="other_loss",
    )


@pytest.mark.weight(1)
@pytest.mark.shows("train_epoch_trains_in_training_mode")
def test_train_epoch_switches_to_training_mode(student, reference, class_names):
    """train_epoch puts the model in training mode: model.train()."""
    epoch = trained(student, reference, class_names)  # on a model that is handed over in evaluation mode
    if not epoch.run.forwards:
        raise reference.oracle.model_never_called(epoch)
    modes = {forward.training for forward in epoch.run.forwards}
    if modes == {False, True}:
        raise reference.named("evaluation_mode_for_some_batches")
    if modes == {False}:
        raise reference.named("missing_train_mode")
