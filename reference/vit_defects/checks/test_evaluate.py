"""evaluate on rigged models whose losses and accuracies are known: several data sets with other answers."""

import numpy as np
import pytest

from grader.kit import Mismatch, evaluations, losses
from grader.kit.reported import HITS, LOSS_SPREAD, LOSSES, Quantity, beside, counts, places, said, shares

pytestmark = pytest.mark.component("evaluate")
SEVERAL = 3  # wrong numbers beside the right one: it is not known which is meant
SMOOTHINGS = (0.0, 0.05, 0.1, 0.15, 0.2)
USUAL_SIZES = (8, 10, 16, 32, 50, 64, 100, 128, 256)  # of batches, as constants of a script have them


def evaluated(student, class_names):
    """The data sets, and what evaluate did with each; it must at least have asked the model."""
    found = evaluations(student, "evaluate", class_names)
    if not all(run.forwards for _, run in found):
        raise Mismatch("evaluate never calls the model.", hint="scores = model(images) for every batch.")
    return [data for data, _ in found], [run for _, run in found]


def batch_means(values, sizes):
    """The mean of every batch."""
    return [part.mean() for part in np.split(values, np.cumsum(sizes)[:-1])]


def average_losses(sets, per_image):
    """The average loss, over images, and then that of the batches' means: the last, smaller batch differs.

    Args:
        per_image: The losses of a data set's images, (n,).
    """
    every = [(per_image(data), data.batch_sizes) for data in sets]
    return (
        tuple(values.mean() for values, _ in every),
        tuple(np.mean(batch_means(values, sizes)) for values, sizes in every),
    )


def usual_averages(sets):
    """The average cross-entropy, as `average_losses`, for each of several shares of label smoothing."""
    return [
        average_losses(sets, lambda data, share=share: losses(data.table, data.labels, share))
        for share in SMOOTHINGS
    ]


def a_loss(values):
    """The quantity of a loss, of one value for each data set."""
    return Quantity("loss", values, LOSS_SPREAD, LOSSES)


def right_losses(sets):
    """The average cross-entropy, over images or of the batches' means."""
    return [a_loss(values) for both in usual_averages(sets) for values in both]


def are_batch_means(right, sets):
    """Whether what is reported is the average of the batches' means, and not also that over images.

    Args:
        right: The places of the average loss.
    """
    over_images = [a_loss(values) for values, _ in usual_averages(sets)]
    return not any(quantity.says(place.numbers) for place in right for quantity in over_images)


def taken_for_size(data):
    """For what the size of every batch may be taken: that of the first, of the last, or a constant."""
    return (data.batch_sizes[0], data.batch_sizes[-1], *USUAL_SIZES)


def losses_of_scores(sets):
    """The average of the negative scores, which is right only where the scores are logarithms."""
    every = average_losses(sets, lambda data: -data.table[np.arange(len(data.labels)), data.labels])
    return [
        Quantity("nll_of_reported_scores", values, LOSS_SPREAD, (-LOSSES[1], LOSSES[1])) for values in every
    ]


def softmax(scores):
    """Over the classes, (n, classes)."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def wrong_losses(sets):
    """What is reported by known mistakes."""
    plain = [losses(data.table, data.labels) for data in sets]
    batches = [batch_means(values, data.batch_sizes) for values, data in zip(plain, sets, strict=True)]
    twice = average_losses(sets, lambda data: losses(softmax(data.table), data.labels))
    known = {
        "loss_not_averaged": [[values.sum() for values in plain]],
        "loss_wrong_divisor": [
            [sum(means) / len(values) for means, values in zip(batches, plain, strict=True)],
            [values.sum() / len(means) for means, values in zip(batches, plain, strict=True)],
        ],
        "batches_taken_as_equal": zip(
            *(
                [sum(means) * size / len(values) for size in taken_for_size(data)]
                for data, means, values in zip(sets, batches, plain, strict=True)
            ),
            strict=True,
        ),
        "loss_of_last_batch": [[means[-1] for means in batches]],
        "loss_of_first_batch": [[means[0] for means in batches]],
        "softmax_before_reported_loss": twice,
    }
    return [Quantity(id_, tuple(values)) for id_, each in known.items() for values in each]


def losses_of_batches(sets):
    """The average loss of each batch by itself, and the sum of these."""
    batches = [batch_means(losses(data.table, data.labels), data.batch_sizes) for data in sets]
    every = [*zip(*batches, strict=True), [sum(means) for means in batches]]
    return [Quantity("loss_of_batches", tuple(values)) for values in every]


def hits_of(sets):
    """Which images are classified correctly, bool (n,), for each data set."""
    return [data.predictions == data.labels for data in sets]


def right_accuracies(sets):
    """The share of all images that is classified correctly, in percent, and the count."""
    hits, count = hits_of(sets), len(sets[0].labels)
    bounds = HITS[0] / count, HITS[1] / count
    found = shares("accuracy", [each.mean() for each in hits], bounds)
    return [*found, counts("accuracy", [int(each.sum()) for each in hits], HITS)]


def wrong_accuracies(sets):
    """What is reported by known mistakes."""
    hits = hits_of(sets)
    batches = [batch_means(each, data.batch_sizes) for each, data in zip(hits, sets, strict=True)]
    known = {
        "accuracy_of_last_batch": [means[-1] for means in batches],
        "accuracy_counts_last_batch": [
            each[-data.batch_sizes[-1] :].sum() / len(each) for each, data in zip(hits, sets, strict=True)
        ],
        "accuracy_mean_of_batches": [np.mean(means) for means in batches],
        "accuracy_per_batch": [each.sum() / len(means) for each, means in zip(hits, batches, strict=True)],
        "accuracy_of_first_batch": [means[0] for means in batches],
        "accuracy_of_wrong_ones": [1 - each.mean() for each in hits],
        "accuracy_of_lowest_scores": [(data.table.argmin(axis=1) == data.labels).mean() for data in sets],
    }
    found = [quantity for id_, values in known.items() for quantity in shares(id_, values)]
    equal = (
        [each.sum() / (len(data.batch_sizes) * size) for size in taken_for_size(data)]
        for each, data in zip(hits, sets, strict=True)
    )
    return found + [
        quantity
        for values in zip(*equal, strict=True)
        for quantity in shares("batches_taken_as_equal", list(values))
    ]


def fault_of(found, wrong, reference):
    """The known mistake whose numbers are reported; None when there is none."""
    ids = said(found, wrong)
    known = [quantity.id for quantity in wrong if quantity.id in ids]
    if known:
        return reference.named(known[0])
    if found and all(place.is_constant for place in found):
        return reference.named("numbers_not_computed")
    return None


@pytest.mark.explains("evaluate_runs", "evaluate_tells_a_good_loss_from_a_bad_one")
@pytest.mark.weight(2)
def test_evaluate_reports_the_average_loss(student, reference, class_names):
    """evaluate reports the average loss over all images."""
    sets, runs = evaluated(student, class_names)
    found, wrong = places(runs), wrong_losses(sets)
    right = said(found, right_losses(sets)).get("loss")
    if right:
        if len(beside(found, right, wrong)) >= SEVERAL:
            student.policy("several_answers", "evaluate reports several different numbers as the loss.")
        elif are_batch_means(right, sets):
            student.policy(
                "average_of_batch_means",
                "evaluate reports the mean of the batches' mean losses, which is not the average loss per "
                "image where the last batch is smaller than the others.",
                "Add loss.item() * len(labels) of every batch, and divide by len(data_loader.dataset) once.",
            )
        return
    if said(found, losses_of_scores(sets)):
        if reference.oracle.returns_log_probabilities(student, len(class_names)):
            return
        raise reference.named("nll_of_reported_scores")
    raise fault_of(found, wrong, reference) or Mismatch(
        "None of the numbers that evaluate prints, appends or returns is the average cross-entropy loss.",
        hint="Sum the loss over all batches and divide once, at the end.",
    )


@pytest.mark.weight(2)
@pytest.mark.explains("evaluate_counts_what_is_right")
def test_evaluate_reports_the_accuracy(student, reference, class_names):
    """evaluate reports how many images are classified correctly, as a count or as a share of all."""
    sets, runs = evaluated(student, class_names)
    found, wrong = places(runs), wrong_accuracies(sets)
    right = said(found, right_accuracies(sets)).get("accuracy")
    if right:
        if len(beside(found, right, wrong)) >= SEVERAL:
            student.policy("several_answers", "evaluate reports several different numbers as the accuracy.")
        return
    if any(sum(forward.size for forward in run.forwards) == run.forwards[0].size for run in runs):
        raise reference.named("loss_of_first_batch")  # of both numbers it is the cause
    raise fault_of(found, wrong, reference) or Mismatch(
        "None of the numbers that evaluate prints, appends or returns is the accuracy or the count.",
        hint="(scores.argmax(dim=1) == labels).sum(), over all batches, divided by the number of images.",
    )


@pytest.mark.weight(1)
@pytest.mark.explains("evaluate_only_looks")
def test_evaluate_switches_to_evaluation_mode(student, reference, class_names):
    """evaluate puts the model in evaluation mode: model.eval()."""
    _, runs = evaluated(student, class_names)
    if any(forward.training for run in runs for forward in run.forwards):
        raise reference.named("missing_eval_mode")


@pytest.mark.weight(1)
@pytest.mark.explains("evaluate_only_looks")
def test_evaluate_computes_no_gradients(student, reference, class_names):
    """evaluate runs without gradients: torch.no_grad()."""
    _, runs = evaluated(student, class_names)
    if any(forward.gradients for run in runs for forward in run.forwards):
        raise reference.named("gradients_in_evaluation")
    if not all(run.gradients_after for run in runs):
        raise reference.named("gradients_left_off")


@pytest.mark.weight(1)
@pytest.mark.explains("evaluate_appends_a_number")
def test_evaluate_appends_the_loss(student, reference, class_names):
    """evaluate appends the average loss to loss_history, as a number."""
    sets, runs = evaluated(student, class_names)
    if not all(run.history or run.returned for run in runs):
        raise reference.named("loss_not_appended")
    for run in runs:
        if run.history_problem:
            raise Mismatch(f"The loss_history is not plain: {run.history_problem}.")
    kept = [place for place in places(runs) if place.source != "printed"]
    if kept and all(place.is_constant for place in kept):
        raise reference.named("numbers_not_computed")
    explained = [*right_losses(sets), *losses_of_scores(sets), *wrong_losses(sets), *losses_of_batches(sets)]
    explained += [*right_accuracies(sets), *wrong_accuracies(sets)]
    if not said(kept, explained):
        student.policy(
            "unexplained_loss", "What evaluate appends or returns is not a loss that the checks recognize."
        )
