"""evaluate on rigged models whose losses and accuracies are known: several data sets with other answers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from grader.kit import Cause, Mismatch, evaluations, losses
from grader.kit.reported import HITS, LOSS_SPREAD, LOSSES, Quantity, beside, counts, places, said, shares

pytestmark = pytest.mark.component("evaluate")
SEVERAL = 3  # wrong numbers beside the right one: it is not known which is meant
SMOOTHINGS = (0.0, 0.05, 0.1, 0.15, 0.2)
ANY_CHANCE = math.inf  # where only advice depends on it, a number that may be meant counts as meant
# one cause of a wrong loss and a wrong accuracy: the same data give another result at each call
ANOTHER_EACH_TIME = Mismatch("", cause=Cause.RANDOM, concerns="totals of evaluate")
ABOUT_HITS = ("acc", "correct", "right", "hit")  # letters of the line in which an accuracy is printed
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
                [
                    *(sum(means) * size / len(values) for size in taken_for_size(data)),
                    *(values.sum() / (len(means) * size) for size in taken_for_size(data)),
                ]
                for data, means, values in zip(sets, batches, plain, strict=True)
            ),
            strict=True,
        ),
        "loss_of_last_batch": [[means[-1] for means in batches]],
        "loss_of_first_batch": [[means[0] for means in batches]],
        "softmax_before_reported_loss": twice,
    }
    return [Quantity(id_, tuple(values)) for id_, each in known.items() for values in each]


def going_on(totals, counts_):
    """Averages whose totals go on from call to call; what they are divided by does too, or does not.

    Args:
        totals: Of every data set, in the order of the calls.
        counts_: What each would be divided by.
    """
    so_far = np.cumsum(totals)
    return tuple(so_far / np.cumsum(counts_)), tuple(so_far / np.array(counts_))


def losses_kept_between_calls(sets):
    """What is reported as the loss where totals are not set to 0 at the start of a call."""
    every = [losses(data.table, data.labels) for data in sets]
    means = [batch_means(values, data.batch_sizes) for values, data in zip(every, sets, strict=True)]
    found = [
        *going_on([values.sum() for values in every], [len(values) for values in every]),
        *going_on([np.sum(each) for each in means], [len(each) for each in means]),
    ]
    return [Quantity("totals_kept_between_calls", values, LOSS_SPREAD, (0.0, 1e3)) for values in found]


def accuracies_kept_between_calls(sets):
    """What is reported as the accuracy where totals are not set to 0 at the start of a call."""
    hits = [int(each.sum()) for each in hits_of(sets)]
    found = [
        quantity
        for values in going_on(hits, [len(data.labels) for data in sets])
        for quantity in shares("totals_kept_between_calls", values, (0.0, float(len(sets))))
    ]
    so_far = np.cumsum(hits).tolist()
    return [*found, counts("totals_kept_between_calls", so_far, (0, len(sets) * HITS[1]))]


def losses_after_each_batch(data):
    """What may be appended after each batch: its own loss, or that of the batches so far, (batches,) each."""
    sizes = np.array(data.batch_sizes)
    for share in SMOOTHINGS:
        means = np.array(batch_means(losses(data.table, data.labels, share), data.batch_sizes))
        sums, numbers = means * sizes, np.arange(1, len(sizes) + 1)
        yield from (means, sums, np.cumsum(means), np.cumsum(sums))
        yield from (np.cumsum(means) / numbers, np.cumsum(sums) / np.cumsum(sizes))
        yield from (np.cumsum(sums) / sizes.sum(), np.cumsum(means) / len(sizes))


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


def told_apart(wrong):
    """Without what has so many values that, of rounded numbers, one fits by chance."""
    return [quantity for quantity in wrong if quantity.id != "batches_taken_as_equal"]


def fault_of(found, wrong, reference):
    """The known mistake whose numbers are reported; None when there is none."""
    ids = said(found, wrong)
    known = [quantity.id for quantity in wrong if quantity.id in ids]
    if known:
        return reference.named(known[0])
    if found and all(place.is_constant for place in found):
        return reference.named("numbers_not_computed")
    return None


@pytest.mark.shows("evaluate_tells_a_good_loss_from_a_bad_one")
@pytest.mark.explains("evaluate_runs")
@pytest.mark.weight(2)
def test_evaluate_reports_the_average_loss(student, reference, class_names):
    """evaluate reports the average loss over all images."""
    sets, runs = evaluated(student, class_names)
    found, wrong = places(runs), wrong_losses(sets)
    right = said(found, right_losses(sets)).get("loss")
    if right:
        if len(beside(found, right, told_apart(wrong))) >= SEVERAL:
            student.policy("several_answers", "evaluate reports several different numbers as the loss.")
        elif are_batch_means(right, sets):
            student.policy(
                "average_of_batch_means",
                "evaluate reports the mean of the batches' mean losses, which is not the average loss per "
                "image where the last batch is smaller than the others.",
                "Add loss.item() * len(labels) of every batch, and divide by len(data_loader.dataset) once.",
                look_for="_ / len(), _ / _",
            )
        return
    if said(found, losses_of_scores(sets)):
        if reference.oracle.returns_log_probabilities(student, len(class_names)):
            return
        raise reference.named("nll_of_reported_scores")
    if said(found, losses_kept_between_calls(sets)):
        raise reference.named("totals_kept_between_calls", seen=ANOTHER_EACH_TIME)
    raise fault_of(found, wrong, reference) or Mismatch(
        "None of the numbers that evaluate prints, appends or returns is the average cross-entropy loss.",
        hint="Sum the loss over all batches and divide once, at the end.",
    )


def is_always_zero(place):
    """Whether a place that may be that of the accuracy has 0 for every data set."""
    if not all(number.value == 0 for number in place.numbers):
        return False
    if place.source == "printed" and place.numbers[0].whole and not place.numbers[0].percent:
        return any(word in place.line for word in ABOUT_HITS)  # not the number of an epoch
    return True


def prints_only_the_loss(sets, runs):
    """Whether the loss is printed, and nothing that may be the accuracy."""
    printed = places([replace(run, returned=(), history=()) for run in runs])
    return bool(said(printed, right_losses(sets))) and not said(
        printed, right_accuracies(sets), most_chance=ANY_CHANCE
    )


@pytest.mark.weight(2)
@pytest.mark.shows("evaluate_counts_what_is_right")
def test_evaluate_reports_the_accuracy(student, reference, class_names):
    """evaluate reports how many images are classified correctly, as a count or as a share of all."""
    sets, runs = evaluated(student, class_names)
    found, wrong = places(runs), wrong_accuracies(sets)
    right = said(found, right_accuracies(sets)).get("accuracy")
    if right:
        if len(beside(found, right, told_apart(wrong))) >= SEVERAL:
            student.policy("several_answers", "evaluate reports several different numbers as the accuracy.")
        elif prints_only_the_loss(sets, runs):
            student.policy(
                "accuracy_not_printed",
                "evaluate prints the loss without the accuracy, and the template asks for both.",
                "Print the accuracy beside the loss.",
                look_for="print()",
            )
        return
    if any(sum(forward.size for forward in run.forwards) == run.forwards[0].size for run in runs):
        raise reference.named("loss_of_first_batch")  # of both numbers it is the cause
    if said(found, accuracies_kept_between_calls(sets)):
        fault = reference.named("totals_kept_between_calls", seen=ANOTHER_EACH_TIME)
        if said(found, losses_kept_between_calls(sets)):
            fault.diagnosis = None  # the check of the loss names it, and this is folded under that one
        raise fault
    fault = fault_of(found, wrong, reference)
    if fault is None and any(is_always_zero(place) for place in found):
        fault = reference.named("accuracy_always_zero")
    raise fault or Mismatch(
        "None of the numbers that evaluate prints, appends or returns is the accuracy or the count.",
        hint="(scores.argmax(dim=1) == labels).sum(), over all batches, divided by the number of images.",
    )


@pytest.mark.weight(1)
@pytest.mark.shows("evaluate_only_looks")
def test_evaluate_switches_to_evaluation_mode(student, reference, class_names):
    """evaluate puts the model in evaluation mode: model.eval()."""
    _, runs = evaluated(student, class_names)
    if any(forward.training for run in runs for forward in run.forwards):
        raise reference.named("missing_eval_mode")


@pytest.mark.weight(1)
@pytest.mark.shows("evaluate_only_looks")
def test_evaluate_computes_no_gradients(student, reference, class_names):
    """evaluate runs without gradients: torch.no_grad()."""
    _, runs = evaluated(student, class_names)
    if any(forward.gradients for run in runs for forward in run.forwards):
        raise reference.named("gradients_in_evaluation")
    if not all(run.gradients_after for run in runs):
        raise reference.named("gradients_left_off")


@pytest.mark.weight(1)
@pytest.mark.shows("evaluate_appends_a_number")
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
    if are_accuracies(sets, [replace(run, returned=(), printed="") for run in runs]):
        raise reference.named("accuracy_appended")
    if are_accuracies(sets, [replace(run, printed="") for run in runs if not run.history]):
        raise reference.named("loss_not_appended")
    fault = history_fault(sets, runs, reference)
    if fault is not None:
        raise fault
    advise(student, sets, runs)
    explained = [*right_losses(sets), *losses_of_scores(sets), *wrong_losses(sets), *losses_of_batches(sets)]
    explained += [*losses_kept_between_calls(sets), *right_accuracies(sets), *wrong_accuracies(sets)]
    if not said(kept, explained):
        student.policy(
            "unexplained_loss", "What evaluate appends or returns is not a loss that the checks recognize."
        )


def history_fault(sets, runs, reference):
    """The known mistake whose loss alone is appended, where the right one is printed or returned; or None."""
    appended = places([replace(run, returned=(), printed="") for run in runs])
    told = places([replace(run, history=()) for run in runs])
    right = right_losses(sets)
    if not said(told, right) or said(appended, right):
        return None
    if all(appends_every_batch(data, run) for data, run in zip(sets, runs, strict=True)):
        return None  # the template asks for one number: that is advised
    wrong = said(appended, told_apart(wrong_losses(sets)))
    return reference.named(next(iter(wrong))) if wrong else None


def are_accuracies(sets, runs):
    """Whether what the runs on all data sets report is the accuracy or the count, and nothing else."""
    reported, accuracies = places(runs), right_accuracies(sets)
    return bool(said(reported, accuracies)) and all(
        any(quantity.says(place.numbers) for quantity in accuracies) for place in reported
    )


def advise(student, sets, runs):
    """The template asks for one number in the history: what is told where there is none, or are several."""
    if not any(run.history for run in runs):
        student.policy(
            "loss_returned_not_appended",
            "evaluate returns what it measures and appends nothing to loss_history, which the template asks "
            "for: the list that it is given stays empty.",
            "loss_history.append(average_loss), before the return.",
            look_for="return",
        )
    elif any(run.history_has_tensors for run in runs):
        student.policy(
            "tensors_kept",
            "evaluate appends tensors; the template asks for one float. What is on a GPU cannot be plotted.",
            "loss_history.append(average_loss.item()), or add up loss.item() in the loop.",
            look_for="append()",
        )
    elif all(appends_every_batch(data, run) for data, run in zip(sets, runs, strict=True)):
        student.policy(
            "loss_of_every_batch_appended",
            "evaluate appends a loss for every batch; the template asks for one number each time that "
            "evaluate is called, the average loss per image.",
            "loss_history.append(average_loss), once, after the loop.",
            look_for="append()",
        )


def appends_every_batch(data, run):
    """Whether the history begins with a loss for each of the batches."""
    count = len(data.batch_sizes)
    return len(run.history) >= count > 1 and any(
        np.allclose(run.history[:count], expected, rtol=1e-3, atol=1e-3)
        for expected in losses_after_each_batch(data)
    )
