"""evaluate on a rigged model whose loss and accuracy are known."""

import re

import numpy as np
import pytest

from grader.kit import Mismatch, classified_data

pytestmark = pytest.mark.component("evaluate")
SEVERAL = 3  # wrong numbers beside the right one: it is not known which is meant
MOST_COVERED = 15  # points of the scale from 0 to 100


def rigged(student, class_names):
    """43 images in batches of 16, 16 and 11, of which an unknown share is classified correctly."""
    seed = student.next_seed()
    return classified_data(class_names, (16, 16, 11), accuracy=0.35 + seed % 10 / 20, seed=seed)


def reported(run, percents=True):
    """Every number that evaluate returned, appended or printed, with the precision that it is given in.

    Args:
        percents: Those with a percent sign as well.
    """
    # a list of guesses is not a report: the last numbers only, and the first of what is printed
    exact = [(value, 1e-4) for value in (*run.returned[-8:], *run.history[-4:])]
    found = re.findall(r"(-?\d+(?:\.(\d+))?(?:e-?\d+)?)( ?%)?", run.printed)
    found = found if len(found) <= 32 else [*found[:12], *found[-16:]]
    # a whole number is a count, unless it is given in percent
    found = [number for number in found if percents or not number[2]]
    near = [0.51 * 10.0 ** -len(decimals) if decimals or percent else 1e-4 for _, decimals, percent in found]
    printed = [(float(value), precision) for (value, _, _), precision in zip(found, near, strict=True)]
    # what is printed in whole percents, all over the scale, says nothing
    covered = sum(2 * precision for _, precision in set(printed))
    return exact + (printed if covered <= MOST_COVERED else printed[-4:])


def says(numbers, value):
    """Whether one of the numbers is the value, within the precision that it is given in."""
    return any(abs(number - value) <= max(precision, 1e-4 * abs(value)) for number, precision in numbers)


def says_share(numbers, share):
    """Whether one of the numbers is the share, as such or in percent."""
    return says(numbers, share) or says(numbers, 100 * share)


def losses(data, scores=None):
    """The cross-entropy of every image, (n,), with several shares of label smoothing: smoothing -> losses."""
    scores = (data.table if scores is None else scores).astype(np.float64)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    hit = -log_p[np.arange(len(scores)), data.labels]
    return {share: (1 - share) * hit - share * log_p.mean(axis=1) for share in (0.0, 0.05, 0.1, 0.15, 0.2)}


def batch_means(values, sizes):
    """The mean of every batch."""
    return [part.mean() for part in np.split(values, np.cumsum(sizes)[:-1])]


def known_losses(data):
    """What is reported by known mistakes: id -> values."""
    plain = losses(data)[0.0]
    sizes = data.batch_sizes
    summed_means = sum(batch_means(plain, sizes))
    table = np.exp(data.table - data.table.max(axis=1, keepdims=True))
    twice = losses(data, table / table.sum(axis=1, keepdims=True))[0.0]
    return {
        "loss_not_averaged": (plain.sum(),),
        "loss_wrong_divisor": (summed_means / len(plain), plain.sum() / len(sizes)),
        "loss_of_last_batch": (plain[-sizes[-1] :].mean(),),
        "loss_of_first_batch": (plain[: sizes[0]].mean(),),
        "softmax_before_reported_loss": (twice.mean(), np.mean(batch_means(twice, sizes))),
    }


def evaluated(student, data, **how):
    """What evaluate did; it must at least have asked the model."""
    run = student.run("evaluate", data, **how)
    if not run.forwards:
        raise Mismatch("evaluate never calls the model.", hint="scores = model(images) for every batch.")
    return run


@pytest.mark.weight(2)
def test_evaluate_reports_the_average_loss(student, reference, class_names):
    """evaluate reports the average loss over all images."""
    data = rigged(student, class_names)
    numbers = reported(student.run("evaluate", data), percents=False)
    known = known_losses(data)
    for values in losses(data).values():
        # the mean of batch means differs only by the last, smaller batch
        if says(numbers, values.mean()) or says(numbers, np.mean(batch_means(values, data.batch_sizes))):
            others = [id_ for id_, wrong in known.items() if any(says(numbers, value) for value in wrong)]
            if len(others) >= SEVERAL:
                student.policy("several_answers", "evaluate reports several different numbers as the loss.")
            return
    negative_log = -data.table[np.arange(len(data.labels)), data.labels]
    for value in (negative_log.mean(), np.mean(batch_means(negative_log, data.batch_sizes))):
        if says(numbers, value):
            if reference.oracle.returns_log_probabilities(student, len(class_names)):
                return
            raise reference.named("nll_of_reported_scores")
    for id_, values in known.items():
        if any(says(numbers, value) for value in values):
            raise reference.named(id_)
    raise Mismatch(
        "None of the numbers that evaluate prints, appends or returns is the average cross-entropy loss.",
        hint="Sum the loss over all batches and divide once, at the end.",
    )


@pytest.mark.weight(2)
def test_evaluate_reports_the_accuracy(student, reference, class_names):
    """evaluate reports how many images are classified correctly, as a count or as a share of all."""
    data = rigged(student, class_names)
    numbers = reported(student.run("evaluate", data))
    hits = data.predictions == data.labels
    if says_share(numbers, hits.mean()) or says(numbers, hits.sum()):
        return
    batches = batch_means(hits, data.batch_sizes)
    known = {
        "accuracy_of_last_batch": batches[-1],
        "accuracy_mean_of_batches": np.mean(batches),
        "accuracy_per_batch": hits.sum() / len(data.batch_sizes),
        "accuracy_of_first_batch": batches[0],
        "accuracy_of_wrong_ones": 1 - hits.mean(),
        "accuracy_of_lowest_scores": (data.table.argmin(axis=1) == data.labels).mean(),
    }
    for id_, value in known.items():
        if says_share(numbers, value):
            raise reference.named(id_)
    raise Mismatch(
        "None of the numbers that evaluate prints, appends or returns is the accuracy or the count.",
        hint="(scores.argmax(dim=1) == labels).sum(), over all batches, divided by the number of images.",
    )


@pytest.mark.weight(1)
def test_evaluate_switches_to_evaluation_mode(student, reference, class_names):
    """evaluate puts the model in evaluation mode: model.eval()."""
    run = evaluated(student, rigged(student, class_names), initial_mode="train")
    if any(forward.training for forward in run.forwards):
        raise reference.named("missing_eval_mode")


@pytest.mark.weight(1)
def test_evaluate_computes_no_gradients(student, reference, class_names):
    """evaluate runs without gradients: torch.no_grad()."""
    run = evaluated(student, rigged(student, class_names))
    if any(forward.gradients for forward in run.forwards):
        raise reference.named("gradients_in_evaluation")
    if not run.gradients_after:
        raise reference.named("gradients_left_off")


@pytest.mark.weight(1)
def test_evaluate_appends_the_loss(student, reference, class_names):
    """evaluate appends the average loss to loss_history, as a number."""
    run = evaluated(student, rigged(student, class_names))
    if not run.history and not run.returned:
        raise reference.named("loss_not_appended")
    if run.history_problem:
        raise Mismatch(f"The loss_history is not plain: {run.history_problem}.")
