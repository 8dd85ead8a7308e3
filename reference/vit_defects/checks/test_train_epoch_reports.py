"""What train_epoch reports of an epoch: numbers that only its losses can be."""

from functools import partial

import numpy as np
import pytest

from grader.kit import Mismatch, trainable_data
from grader.kit.reported import Quantity, places, said

pytestmark = pytest.mark.component("train_epoch")


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


def an_epoch(student, reference, class_names, count, size=2):
    """An epoch of so many batches of a size, on data with other losses than any other.

    Raises:
        Mismatch: train_epoch raised, or does not exist.
    """
    draws = np.random.default_rng(student.next_seed())
    seed, scale = int(draws.integers(2**31)), draws.uniform(*SCALES)
    data = trainable_data(class_names, (size,) * count, features=5, seed=seed, scale=scale)
    return reference.oracle.Epoch(data, student.run("train_epoch", data))


def two_epochs(student, reference, class_names):
    """Two epochs that are told apart by what is reported of them; each time longer ones.

    Short ones suffice where the average or the sum of all batches is reported: they take a tenth of the
    time. What is reported every so many batches, or not known, shows what it is in long ones.
    """
    run = partial(an_epoch, student, reference, class_names)
    short = run(SHORT, 3)  # what is divided by the size of a batch shows it
    if not reports(short.run) or may_be_at_end(short):
        yield [short, run(SHORTER)]
    long = run(LONG)
    yield [long, short]
    found = [long, run(LONG)]
    if all(place.is_constant for place in places([epoch.run for epoch in found])):
        found = [run(LONGER), run(LONGER)]
    yield found


def may_be_at_end(epoch):
    """Whether an average or a sum of all batches may be what an epoch reports; one shows where it is not."""
    quantities = reported_quantities([epoch], at_end=True)
    return quantities is None or any(
        quantity.says(place.numbers) for place in places([epoch.run]) for quantity in quantities
    )


def is_short(found):
    """Whether both epochs are too short for what is reported every so many batches."""
    return all(epoch.count <= SHORT for epoch in found)


def reports(run):
    """Whether a run reports any number."""
    return bool(run.history or run.returned or any(letter.isdigit() for letter in run.printed))


def reported_quantities(found, *, at_end=False, after=0):
    """What may be reported of some epochs: losses of batches, and averages and sums of these.

    Args:
        at_end: Only averages and sums of all batches.
        after: 1: the losses of batches after their steps.
    """
    every = [epoch.mean_losses(after=after) for epoch in found]
    if any(each is None for each in every):
        return None
    sizes = [epoch.data.batch_sizes[0] for epoch in found]
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
@pytest.mark.shows("train_epoch_keeps_floats")
def test_train_epoch_reports_its_loss(student, reference, class_names):
    """train_epoch reports the loss: it appends it to loss_history, prints it or returns it."""
    tells_of_short = True
    stages = []
    for found in two_epochs(student, reference, class_names):
        stages.append(found)
        fault = fault_of_reports(found, reference)
        if is_short(found):
            tells_of_short = any(reports(epoch.run) for epoch in found)
        if fault is None:
            quantities = reported_quantities(found, at_end=is_short(found))
            if quantities is None and is_short(found):
                continue
            if quantities is None or said(places([epoch.run for epoch in found]), quantities):
                if any(map(first_is_hundredth, found)):
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
    *_, different, equally_long = stages
    if set.intersection(*map(divisors, different)):
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
    first = [next(iter(batches_reported(epoch)), None) for epoch in equally_long]
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
    return quantities is not None and bool(said(places([epoch.run for epoch in found]), quantities))


def batches_asked(count):
    """The numbers of the batches, from 0, that the template wants reported of an epoch."""
    return range(0, count, ASKED)


def divisors(epoch):
    """By which numbers the mean loss is divided in every entry of the history, by their names."""
    every, history, count = epoch.mean_losses(), np.array(epoch.run.history), epoch.count
    numbers = next(
        (which for which in (batches_asked(count), range(count)) if len(which) == len(history)), ()
    )
    if every is None or not numbers:
        return set()
    candidates = {"size": epoch.data.batch_sizes[0], "batches": count, "images": sum(epoch.data.batch_sizes)}
    return {
        name
        for name, divisor in candidates.items()
        for kind in every[:2]
        if np.allclose(history * divisor, kind[list(numbers)], rtol=1e-3, atol=0)
    }


def first_is_hundredth(epoch):
    """Whether the first entry of the history is a hundredth of the first batch's loss."""
    every = epoch.mean_losses() if epoch.run.history else None
    return every is not None and any(
        np.isclose(epoch.run.history[0] * ASKED, kind[0], rtol=1e-3, atol=0) for kind in every[:2]
    )


def batches_reported(epoch):
    """The numbers of the batches whose losses are in the history, in its order; none if one is unknown."""
    every = epoch.mean_losses()
    numbers = []
    for entry in epoch.run.history if every is not None else ():
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
    run, count = found[0].run, found[0].count
    if not any(epoch.run.history or epoch.run.returned for epoch in found):
        student.policy(
            "loss_not_kept",
            "train_epoch prints its loss, and appends nothing to loss_history: the curve stays empty.",
            "loss_history.append(loss.item()) where the loss is printed.",
            look_for="print()",
        )
    elif not any(epoch.run.history for epoch in found):
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
    elif len(run.history) > len(batches_asked(count)):
        student.policy(
            "losses_kept_more_often",
            f"In an epoch of {count} batches train_epoch appends {len(run.history)} losses; "
            "the template asks for those of the first batch, the 101st, ...",
            "Append it where it is printed: if index % 100 == 0.",
            look_for="append()",
        )
    elif any(map(is_average_so_far, found)):
        student.policy(
            "average_so_far_kept",
            "train_epoch appends a mean of the losses so far; the template asks for that batch's loss.",
            "loss_history.append(loss.item()).",
            look_for="append()",
        )


def is_average_so_far(epoch):
    """Whether for the 101st batch the mean of all losses, or of those after the first, was appended."""
    history = epoch.run.history
    every = epoch.mean_losses() if epoch.count == LONG and len(history) == 2 else None
    return every is not None and any(
        abs(history[1] - mean) < 1e-3 < abs(history[1] - kind[-1])
        for kind in every
        for mean in (kind.mean(), kind[1:].mean())
    )


def fault_of_reports(found, reference):
    """What is wrong with what is reported of two epochs; None where nothing is."""
    run = found[0].run
    if not run.forwards:
        return reference.oracle.model_never_called(found[0])
    if run.history_problem:
        return reference.named("history_keeps_graph")
    if not reports(run):
        return reference.named("loss_not_reported")
    reported = places([epoch.run for epoch in found])
    kept = any(epoch.run.history or epoch.run.returned for epoch in found)
    if reported and not kept and all(place.is_constant for place in reported):
        return reference.named("loss_not_reported")  # what is printed are numbers of batches
    if (len(run.history) > 1 and len(set(run.history)) == 1) or (
        reported and all(place.is_constant for place in reported)
    ):
        return Mismatch(
            "The losses that train_epoch reports are always the same number.", diagnosis="constant_loss"
        )
    if not found[0].is_moved_otherwise and found[0].are_gradients_finite:
        highest = max(-np.log((p * one_hot).sum(axis=1)).sum() for _, p, one_hot in found[0].batches)
        if len(run.history) > 1 and min(run.history[1:]) > 3 * highest:
            return reference.named("reported_loss_not_averaged")
    return None
