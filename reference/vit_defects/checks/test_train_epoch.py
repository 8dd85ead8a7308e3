"""train_epoch on a rigged model, loader and optimizer: every gradient that should be used is known."""

import itertools

import numpy as np
import pytest

from grader.kit import Cause, Mismatch, Undecided, losses, trainable_data
from grader.kit.reported import Quantity, places, said

pytestmark = pytest.mark.component("train_epoch")


MIXED_AGAIN = 3  # times that an epoch is run anew where mixup may have drawn nothing but shares near 0 and 1


def trained(student, class_names):
    """(data, run) of a short epoch: one for all checks that ask what is done with each batch.

    Raises:
        Mismatch: train_epoch raised, or does not exist.
    """

    def make():
        data = epoch_data(student, class_names)
        return data, attempted(student, data)

    data, run = student.shared("train_epoch", make)
    return data, raised(run)


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


def never_called(data):
    """What every check says of a run in which the model was not called: folded under what is first named."""
    size = data.batch_sizes[0]
    message = f"For batches of {size} images train_epoch never calls the model."
    return Mismatch(message, cause=Cause.NOT_CALLED, concerns="model")


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


def batch_gradients(data, run):
    """The weight's gradient of every batch by itself, from the gradients that reached the scores."""
    ends = np.cumsum(data.batch_sizes)
    reached = run.arrays["logit_gradients"]
    features = data.arrays["features"]
    return [features[e - n : e].T @ reached[e - n : e] for e, n in zip(ends, data.batch_sizes, strict=True)]


def alike(used, expected):
    """Whether two gradients agree up to a factor of at most 1 (gradient clipping shrinks them)."""
    size = np.abs(expected).max()
    factor = (used * expected).sum() / max((expected * expected).sum(), 1e-12)
    return 0 < factor < 1.001 and np.abs(used - factor * expected).max() < 1e-3 * size


@pytest.mark.explains("train_epoch_runs", "train_epoch_clears_the_gradients")
@pytest.mark.weight(3)
def test_train_epoch_steps_along_each_batch(student, reference, class_names):
    """Every optimizer step uses the gradient of its own batch, and of nothing else."""
    data, run = trained(student, class_names)
    if not run.forwards:
        raise reference.named("model_never_called", seen=never_called(data))
    if is_moved_otherwise(data, run):
        raise reference.named("other_optimizer")
    if run.steps == 0:
        raise reference.named("no_step")
    if run.steps == 1 and len(run.forwards) == len(data.batch_sizes):
        raise reference.named("step_once_per_epoch")
    if run.steps != len(data.batch_sizes):
        raise Mismatch(
            f"For {len(data.batch_sizes)} batches the optimizer took {run.steps} steps.",
            hint="Every batch gets one step; look at break, return, continue and the indentation.",
            diagnosis="steps_skipped",
        )
    fault = no_gradients(run, reference)
    if fault is not None:
        raise fault
    expected = batch_gradients(data, run)
    used = list(run.arrays["step_gradients"])
    if all(alike(a, b) for a, b in zip(used, expected, strict=True)):
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
    raise Mismatch("The optimizer's steps do not follow the gradients of their own batches.")


def is_moved_otherwise(data, run):
    """Whether the weights have changed although the optimizer that was passed took no step."""
    return run.steps == 0 and not np.array_equal(run.arrays["weights"], data.arrays["weights"])


@pytest.mark.weight(2)
@pytest.mark.explains("train_epoch_learns_the_labels")
def test_train_epoch_learns_from_the_labels(student, reference, class_names):
    """The loss is the cross-entropy between the model's scores and the labels, and alike for every batch."""
    data, run = trained(student, class_names)
    if not run.forwards:
        raise never_called(data)
    fault = no_gradients(run, reference)
    if fault is not None:
        if run.steps == len(data.batch_sizes):  # the check of the steps has named it
            raise Mismatch(fault.message, cause=fault.cause, concerns=fault.concerns)
        raise fault
    if is_mixed_up(student, class_names, data, run):
        return
    sizes = np.array(data.batch_sizes)
    factors = []
    for gradient, p, one_hot in batches(data, run):
        factor, smoothing, rest = cross_entropy_factor(gradient, p, one_hot)
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


def scores_of_batches(data, run, *, after=0):
    """The scores of each batch, float64 (images, classes), by the weights that the steps before it left.

    Args:
        after: So many further steps are taken.
    """
    initial = data.arrays["weights"].astype(np.float64)
    gradients = run.arrays.get("step_gradients", np.zeros((0, *initial.shape)))
    # row k: the sum of the first k steps' gradients; a worker sends those of the first steps only
    sums = np.concatenate([np.zeros((1, *initial.shape)), np.cumsum(gradients, axis=0, dtype=np.float64)])
    start = 0
    for size, taken in zip(data.batch_sizes, steps_before(run, len(data.batch_sizes)), strict=True):
        weights = initial - data.learning_rate * sums[min(taken + after, len(gradients))]
        yield data.arrays["features"][start : start + size] @ weights
        start += size


def batches(data, run):
    """For each batch: the gradient that reached the scores, their softmax, and the labels as one-hot rows."""
    start = 0
    # after a step that is not the optimizer's, nobody knows the weights
    known = 1 if is_moved_otherwise(data, run) else None
    each = zip(scores_of_batches(data, run), data.batch_sizes, strict=True)
    for scores, size in itertools.islice(each, known):
        rows = slice(start, start + size)
        gradient = run.arrays["logit_gradients"][rows].astype(np.float64)
        yield gradient, softmax(scores), np.eye(scores.shape[1])[data.labels[rows]]
        start += size


def steps_before(run, count):
    """How many steps the optimizer had taken before each of the first `count` forward passes."""
    taken, steps = [], 0
    for event in run.events:
        steps += event == "step"
        if event == "forward":
            taken.append(steps)
    return [*taken, *[steps] * count][:count]


def cross_entropy_factor(gradient, p, one_hot):
    """(factor, smoothing, rest) of a gradient as a multiple of that of the cross-entropy.

    With label smoothing, a share of every label is moved to all classes evenly: the gradient is
    p - (1 - share) one_hot - share / classes. Source: Szegedy et al. (2016), section 7.
    """
    even = one_hot - 1 / one_hot.shape[1]
    columns = np.stack([(p - one_hot).ravel(), even.ravel()], axis=1)
    found = np.linalg.lstsq(columns, gradient.ravel(), rcond=None)[0]
    size = max(np.abs(gradient).max(), 1e-12)
    rest = np.abs(columns @ found - gradient.ravel()).max() / size
    return found[0], found[1] / (found[0] or 1e-12), rest


def is_mixed_up(student, class_names, data, run):
    """Whether every batch is mixed with its own images in another order, with a share of its own: mixup.

    Source: Zhang et al. (2018), section 2. A share near 0 or 1 alone may be labels in another order, so where
    there is no other, it is tried again: shares are drawn, orders are a mistake's own.
    """
    for again in range(1 + MIXED_AGAIN):
        if again:
            data = epoch_data(student, class_names)
            run = student.run("train_epoch", data)
            if not np.isfinite(run.arrays["logit_gradients"]).all():
                return False
        shares = [own_share(*part) for part in batches(data, run)]
        if None in shares or min(shares) > 1 - 1e-4:
            return False
        if any(0.02 < share < 0.98 for share in shares):
            return True
    return False


def own_share(gradient, p, one_hot):
    """The share of each image's own label, where another image of the batch has the rest; else None."""
    for scaled in (len(gradient) * gradient, gradient):
        targets = p - scaled
        share = (targets * one_hot).sum(axis=1).min()
        if share > 0.98:
            others = one_hot
        else:
            others = ((targets - share * one_hot) / (1 - share)).round()
        same_labels = (others.sum(axis=0) == one_hot.sum(axis=0)).all() and (others.sum(axis=1) == 1).all()
        mixture = share * one_hot + (1 - share) * others
        if (
            share > -1e-3
            and same_labels
            and np.abs(targets - mixture).max() < 2e-3 + (0.02 if share > 0.98 else 0)
        ):
            return share
    return None


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
        outer = softmax(p) - one_hot
        # the gradient of cross-entropy reaches the scores through the softmax's own derivative
        twice = p * (outer - (outer * p).sum(axis=1, keepdims=True))
        if np.abs(scaled - twice).max() < 1e-4:
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
    if is_unusual(gradient, p, one_hot):
        return Undecided("the loss is a variant of the cross-entropy; whether it may be one is a person's")
    return Mismatch(
        "The gradient that reaches the scores is not that of a cross-entropy between the scores and the "
        "labels, nor of one with weights, soft labels or a focus on hard images.",
        hint="loss = F.cross_entropy(model(images), labels): the scores as they are, the labels as numbers.",
        diagnosis="other_loss",
    )


def is_unusual(gradient, p, one_hot):
    """Whether a gradient is that of a loss which teaches the labels, though it is not a plain cross-entropy.

    A loss of the right class's probability alone has rows that are multiples of p - one_hot: with weights
    of classes, or a focus on what is hard (Lin et al., 2017), never on what is easy. Soft labels (mixup,
    Zhang et al., 2018) have rows p - t, where t is for the most part the own label. One sigmoid for each
    class has sigmoid(scores) - one_hot. A small penalty on the scores leaves the gradient nearer to the plain
    one than to that of any known mistake.
    """
    plain = p - one_hot
    factors = (gradient * plain).sum(axis=1) / np.maximum((plain * plain).sum(axis=1), 1e-12)
    size = np.abs(gradient).max()
    if np.abs(gradient - factors[:, None] * plain).max() < 1e-3 * size and (factors > 0).all():
        by_class = [np.ptp(factors[one_hot[:, label] == 1]) for label in np.flatnonzero(one_hot.sum(axis=0))]
        easy = (p * one_hot).sum(axis=1)
        harder = np.corrcoef(np.argsort(np.argsort(easy)), np.argsort(np.argsort(factors)))[0, 1] < 0
        return max(by_class) < 1e-2 * factors.max() or bool(harder)
    for scale in (len(gradient), 1):
        targets = p - scale * gradient
        own = (targets * one_hot).sum(axis=1)
        if np.abs(targets.sum(axis=1) - 1).max() < 1e-3 and targets.min() > -1e-3 and own.min() > 0.5 - 1e-3:
            return True
    return is_sigmoid(gradient, np.log(p), one_hot) or is_mostly_plain(gradient, p, one_hot)


def is_mostly_plain(gradient, p, one_hot):
    """Whether a gradient points nearly where the cross-entropy's does, and nearer than a mistake's does."""
    outer = softmax(p) - one_hot
    known = (
        -one_hot,
        (p * one_hot).sum(axis=1, keepdims=True) * (p - one_hot),
        p * (outer - (outer * p).sum(axis=1, keepdims=True)),
    )
    plain, *wrong = (alignment(gradient, other) for other in (p - one_hot, *known))
    return plain > 0.98 and plain > max(wrong)


def alignment(gradient, other):
    """The cosine of the angle between two gradients."""
    return (gradient * other).sum() / max(np.linalg.norm(gradient) * np.linalg.norm(other), 1e-12)


def is_sigmoid(gradient, scores, one_hot):
    """Whether a gradient is a multiple of sigmoid(scores + c) - one_hot, with a c of its own in each row."""
    for factor in (1.0, 1 / one_hot.shape[1], 1 / len(gradient), 1 / one_hot.size):
        shares = gradient / factor + one_hot
        if shares.min() > 0 and shares.max() < 1:
            rest = np.log(shares / (1 - shares)) - scores
            if np.ptp(rest, axis=1).max() < 1e-2:
                return True
    return False


def softmax(scores):
    """Over the classes, (n, classes)."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.weight(1)
@pytest.mark.explains("train_epoch_trains_in_training_mode")
def test_train_epoch_switches_to_training_mode(student, reference, class_names):
    """train_epoch puts the model in training mode: model.train()."""
    data, run = trained(student, class_names)  # on a model that is handed over in evaluation mode
    if not run.forwards:
        raise never_called(data)
    modes = {forward.training for forward in run.forwards}
    if modes == {False, True}:
        raise reference.named("evaluation_mode_for_some_batches")
    if modes == {False}:
        raise reference.named("missing_train_mode")


# what is reported of an epoch: the loss of one of these batches (-1: the last), or the average up to one
REPORTED_BATCHES = (*range(0, 101, 5), *range(4, 101, 5), 1, 2, -1, -2)
REPORTED_MEANS = (9, 10, 19, 20, 24, 49, 50, 99, 100, -1, -2)
# a guess within p of a batch's loss, or of a mean, is right with a probability of at most 2 p / spread
BATCH_SPREAD, MEAN_SPREAD = 4.0, 1.5
SCALES = (2.5, 4.0)  # of the features, so that losses are anywhere between 0 and 20


# batches of an epoch: something may be reported every hundred, or two hundred
LONG, LONGER = 101, 201
SHORT, SHORTER = 17, 11
ASKED = 100  # batches from one that the template wants reported to the next


def an_epoch(student, class_names, count, size=2):
    """(data, run) of an epoch of so many batches of a size, on data with other losses than any other.

    Raises:
        Mismatch: train_epoch raised, or does not exist.
    """
    draws = np.random.default_rng(student.next_seed())
    seed, scale = int(draws.integers(2**31)), draws.uniform(*SCALES)
    data = trainable_data(class_names, (size,) * count, features=5, seed=seed, scale=scale)
    return data, student.run("train_epoch", data)


def two_epochs(student, class_names):
    """Two epochs that are told apart by what is reported of them; each time longer ones.

    Short ones suffice where the average or the sum of all batches is reported: they take a tenth of the
    time. What is reported every so many batches, or not known, shows what it is in long ones.
    """
    short = an_epoch(student, class_names, SHORT, 3)  # what is divided by the size of a batch shows it
    yield [short, an_epoch(student, class_names, SHORTER)]
    long = an_epoch(student, class_names, LONG)
    yield [long, short]
    found = [long, an_epoch(student, class_names, LONG)]
    if all(place.is_constant for place in places([run for _, run in found])):
        found = [an_epoch(student, class_names, LONGER) for _ in range(2)]
    yield found


def is_short(found):
    """Whether both epochs are too short for what is reported every so many batches."""
    return all(len(data.batch_sizes) <= SHORT for data, _ in found)


def reports(run):
    """Whether a run reports any number."""
    return bool(run.history or run.returned or any(letter.isdigit() for letter in run.printed))


def losses_of_batches(data, run, *, after=0):
    """The average loss of each batch as the gradients say that train_epoch has it: a list of (batches,).

    Plain, with the label smoothing that was used, and with the factor that was used too. None when the loss
    is not a cross-entropy, or the weights are changed by something else than the optimizer, which other
    checks judge.

    Args:
        after: 1: by the weights after the step of the batch.
    """
    if is_moved_otherwise(data, run) or not np.isfinite(run.arrays["logit_gradients"]).all():
        return None
    first = [batch for batch in itertools.islice(batches(data, run), 50) if np.abs(batch[0]).max() > 0.05]
    factors = [cross_entropy_factor(*batch) for batch in first]
    if not factors or max(rest for _, _, rest in factors) > 1e-2:
        return None
    factor, smoothing, _ = np.median(factors, axis=0)
    if factor <= 0 or not -0.001 < smoothing < 0.6:
        return None
    each = list(scores_of_batches(data, run, after=after))
    labels = np.split(data.labels, np.cumsum(data.batch_sizes)[:-1])
    plain, smooth = (
        np.array([losses(scores, own, share).mean() for scores, own in zip(each, labels, strict=True)])
        for share in (0.0, max(smoothing, 0.0))
    )
    return [plain, smooth, factor * np.array(data.batch_sizes) * smooth]


def reported_quantities(found, *, at_end=False, after=0):
    """What may be reported of some epochs: losses of batches, and averages and sums of these.

    Args:
        at_end: Only averages and sums of all batches.
        after: 1: the losses of batches after their steps.
    """
    every = [losses_of_batches(data, run, after=after) for data, run in found]
    if any(each is None for each in every):
        return None
    sizes = [data.batch_sizes[0] for data, _ in found]
    quantities = {}

    def add(of, spread, divisors=(1,) * len(found)):
        for kind in zip(*every, strict=True):
            values = tuple(float(of(each) / divisor) for each, divisor in zip(kind, divisors, strict=True))
            quantities[np.round(values, 4).tobytes()] = Quantity("loss", values, spread, (0.0, 1e6))

    add(lambda batch_losses: batch_losses.mean(), MEAN_SPREAD)
    add(lambda batch_losses: batch_losses.mean(), MEAN_SPREAD / max(sizes), sizes)  # by the number of images
    add(np.sum, 100 * MEAN_SPREAD)
    if at_end:
        return list(quantities.values())
    shortest = min(len(each[0]) for each in every)
    for batch in (number for number in REPORTED_BATCHES if number < shortest):
        add(lambda batch_losses, at=batch: batch_losses[at], BATCH_SPREAD)
    for last in REPORTED_MEANS:
        add(lambda batch_losses, at=last: batch_losses[: at % len(batch_losses) + 1].mean(), MEAN_SPREAD)
    for window in (10, 20, 50, 100):
        add(lambda batch_losses, size=window: batch_losses[-size:].mean(), MEAN_SPREAD)
    return list(quantities.values())


@pytest.mark.weight(1)
@pytest.mark.explains("train_epoch_keeps_floats")
def test_train_epoch_reports_its_loss(student, reference, class_names):
    """train_epoch reports the loss: it appends it to loss_history, prints it or returns it."""
    tells_of_short = True
    stages = []
    for found in two_epochs(student, class_names):
        stages.append(found)
        fault = fault_of_reports(found, reference)
        if is_short(found):
            tells_of_short = any(reports(run) for _, run in found)
        if fault is None:
            quantities = reported_quantities(found, at_end=is_short(found))
            if quantities is None and is_short(found):
                continue
            if quantities is None or said(places([run for _, run in found]), quantities):
                if any(first_is_hundredth(data, run) for data, run in found):
                    raise reference.named("first_loss_divided")
                advise(student, found, tells_of_short)
                return
    if fault is not None:
        raise fault
    explain(student, reference, stages)


def explain(student, reference, stages):
    """What is told of reports that are not losses as they are asked for.

    Args:
        stages: The epochs that two_epochs gave.
    """
    _, different, equally_long = stages
    if set.intersection(*(divisors(data, run) for data, run in different)):
        raise reference.named("reported_loss_divided_again")
    if any(is_after_step(found) for found in (different, equally_long)):
        student.policy(
            "loss_after_step",
            "The losses that train_epoch reports are those after the steps, for which the model computes the "
            "scores once more; the loss that a step is taken for is at hand.",
            "loss_history.append(loss.item()).",
            look_for="append()",
        )
        return
    first = [next(iter(batches_reported(data, run)), None) for data, run in equally_long]
    if None not in first and goes_on_counting(*first):
        one, other = (number + 1 for number in first)
        student.policy(
            "counter_goes_on",
            f"In one epoch of {LONG} batches train_epoch first reports batch {one}, in the next one batch "
            f"{other}: it goes on counting. The template asks for the first of every epoch, the 101st, ...",
            "Count the batches within train_epoch, from 0: for index, (images, labels) in enumerate(...).",
        )
        return
    student.policy("unexplained_loss", "What train_epoch reports is not a loss that a check recognizes.")


def is_after_step(found):
    """Whether what is reported of some epochs are losses by the weights that the batches' own steps left."""
    quantities = reported_quantities(found, after=1)
    return quantities is not None and bool(said(places([run for _, run in found]), quantities))


def batches_asked(count):
    """The numbers of the batches, from 0, that the template wants reported of an epoch."""
    return range(0, count, ASKED)


def divisors(data, run):
    """By which numbers the mean loss is divided in every entry of the history, by their names."""
    every, count = losses_of_batches(data, run), len(data.batch_sizes)
    numbers = next(
        (which for which in (batches_asked(count), range(count)) if len(which) == len(run.history)), ()
    )
    if every is None or not numbers:
        return set()
    candidates = {"size": data.batch_sizes[0], "batches": count, "images": sum(data.batch_sizes)}
    return {
        name
        for name, divisor in candidates.items()
        for kind in every[:2]
        if np.allclose(np.array(run.history) * divisor, kind[list(numbers)], rtol=1e-3, atol=0)
    }


def first_is_hundredth(data, run):
    """Whether the first entry of the history is a hundredth of the first batch's loss."""
    every = losses_of_batches(data, run) if run.history else None
    return every is not None and any(
        np.isclose(run.history[0] * ASKED, kind[0], rtol=1e-3, atol=0) for kind in every[:2]
    )


def batches_reported(data, run):
    """The numbers of the batches whose losses are in the history, in its order; none if one is unknown."""
    every = losses_of_batches(data, run)
    numbers = []
    for entry in run.history if every is not None else ():
        kind = min(every, key=lambda kind: np.abs(kind - entry).min())
        if np.abs(kind - entry).min() > 1e-4:
            return []
        numbers.append(int(np.abs(kind - entry).argmin()))
    return numbers


def goes_on_counting(one, other):
    """Whether batches that are reported first, of two epochs one after the other, are a hundred apart."""
    return (one, other) != (0, 0) and (LONG - one + other) % ASKED == 0


def advise(student, found, tells_of_short):
    """The handout asks for the history, and for the loss of a batch: what else is told, and costs nothing.

    Args:
        tells_of_short: Something is reported of an epoch with fewer than a hundred batches, too.
    """
    if not tells_of_short:
        student.policy(
            "short_epoch_not_reported",
            "An epoch with fewer than 100 batches reports nothing: train_epoch waits for the hundredth, and "
            "the template asks for the first, the 101st, ...",
            "Count the batches from 0: if index % 100 == 0.",
            look_for="_ % 100 == _, _ % 100, _ % _",
        )
        return
    data, run = found[0]
    asked = len(batches_asked(len(data.batch_sizes)))
    if not any(run.history or run.returned for _, run in found):
        student.policy(
            "loss_not_kept",
            "train_epoch prints its loss, and appends nothing to loss_history: the curve stays empty.",
            "loss_history.append(loss.item()) where the loss is printed.",
            look_for="print()",
        )
    elif not any(run.history for _, run in found):
        student.policy(
            "loss_only_returned",
            "train_epoch returns its loss, and appends nothing to the loss_history that it gets: unless your "
            "loop over the epochs keeps what is returned, the curve stays empty.",
            "loss_history.append(loss.item()). loss_history = loss_history + [...] makes another list.",
            look_for="return",
        )
    elif run.history_has_tensors:
        student.policy(
            "tensors_kept",
            "train_epoch appends tensors; the template asks for floats. What is on a GPU cannot be plotted.",
            "loss_history.append(loss.item()).",
            look_for="append()",
        )
    elif len(run.history) > asked:
        student.policy(
            "losses_kept_more_often",
            f"In an epoch of {len(data.batch_sizes)} batches train_epoch appends {len(run.history)} losses; "
            "the template asks for those of the first batch, the 101st, ...",
            "Append it where it is printed: if index % 100 == 0.",
            look_for="append()",
        )
    elif any(is_average_so_far(data, run) for data, run in found):
        student.policy(
            "average_so_far_kept",
            "train_epoch appends a mean of the losses so far; the template asks for that batch's loss.",
            "loss_history.append(loss.item()).",
            look_for="append()",
        )


def is_average_so_far(data, run):
    """Whether for the 101st batch the mean of all losses, or of those after the first, was appended."""
    every = losses_of_batches(data, run) if len(data.batch_sizes) == LONG and len(run.history) == 2 else None
    return every is not None and any(
        abs(run.history[1] - mean) < 1e-3 < abs(run.history[1] - kind[-1])
        for kind in every
        for mean in (kind.mean(), kind[1:].mean())
    )


def fault_of_reports(found, reference):
    """What is wrong with what is reported of two epochs; None where nothing is."""
    data, run = found[0]
    if not run.forwards:
        return never_called(data)
    if run.history_problem:
        return reference.named("history_keeps_graph")
    if not reports(run):
        return reference.named("loss_not_reported")
    reported = places([run for _, run in found])
    kept = any(run.history or run.returned for _, run in found)
    if reported and not kept and all(place.is_constant for place in reported):
        return reference.named("loss_not_reported")  # what is printed are numbers of batches
    if (len(run.history) > 1 and len(set(run.history)) == 1) or (
        reported and all(place.is_constant for place in reported)
    ):
        return Mismatch(
            "The losses that train_epoch reports are always the same number.", diagnosis="constant_loss"
        )
    if not is_moved_otherwise(data, run) and np.isfinite(run.arrays["logit_gradients"]).all():
        highest = max(-np.log((p * one_hot).sum(axis=1)).sum() for _, p, one_hot in batches(data, run))
        if len(run.history) > 1 and min(run.history[1:]) > 3 * highest:
            return reference.named("reported_loss_not_averaged")
    return None
