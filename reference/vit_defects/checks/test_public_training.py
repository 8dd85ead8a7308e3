"""Public checks of train_epoch and evaluate."""

import math
import re

import pytest

from grader.kit import AffineFake, Mismatch, Undecided, same

# 3 x 3 patches of 5 x 5 pixels, 2 channels: nothing is as in the handout's default
VIT = {"image_size": 15, "patch_size": 5, "num_classes": 7, "dim": 22, "depth": 1, "heads": 5, "mlp_dim": 31}

# kinds of code by which a line is found
LOSSES = "cross_entropy() | nll_loss() | criterion() | loss_fn()"


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.2)
def test_train_epoch_runs(student, class_names):
    """train_epoch goes through the loader once and takes an optimizer step for every batch."""
    from grader.kit import trainable_data

    data = trainable_data(class_names, (8,) * 6, features=5, seed=student.next_seed())
    run = student.run("train_epoch", data)
    if len(run.forwards) != 6:
        raise Mismatch(f"For a loader of 6 batches the model was called {len(run.forwards)} times.")
    if run.steps != 6:
        raise Mismatch(
            f"For a loader of 6 batches the optimizer took {run.steps} steps.",
            hint="Call optimizer.step() once for every batch, after loss.backward().",
            look_for="step(), backward(), loop",
            diagnosis="no_step" if run.steps == 0 else None,
        )


def epoch(student, class_names):
    """(data, run) of an epoch over a linear model, whose gradients are known: one for several checks."""
    from grader.kit import trainable_data

    def make():
        data = trainable_data(class_names, (8, 8, 8, 8, 5), features=5, seed=student.next_seed(), scale=2.0)
        return data, student.run("train_epoch", data)

    return student.shared("an epoch", make)


def cosine(one, other):
    """Of the angle between two matrices; 0 where one of them is 0."""
    import numpy as np

    return (one * other).sum() / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-12)


def gradients_of_batches(data, run):
    """What reached the model's scores in each batch, and the gradient of the weights that comes of it."""
    start = 0
    for size in data.batch_sizes:
        rows = slice(start, start + size)
        reached = run.arrays["logit_gradients"][rows]
        yield reached, data.arrays["features"][rows].T @ reached
        start += size


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.2)
def test_train_epoch_trains_in_training_mode(student, class_names):
    """train_epoch puts the model in training mode, whatever mode it comes in."""
    _, run = epoch(student, class_names)
    if not all(forward.training for forward in run.forwards):
        raise Mismatch(
            "The model was passed in evaluation mode, and was trained in it: dropout is off.",
            hint="model.train() before the loop over the batches: setting model.training reaches no layer.",
            look_for="_.training | eval() | train(False), for",
            diagnosis="missing_train_mode",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.because("train_epoch_runs")
@pytest.mark.weight(0.2)
def test_train_epoch_clears_the_gradients(student, class_names):
    """Every step follows the gradient of its own batch alone: gradients are cleared between the batches."""
    import numpy as np

    data, run = epoch(student, class_names)
    own = [gradient for _, gradient in gradients_of_batches(data, run)]
    if run.steps != len(own):
        raise Mismatch(f"For a loader of {len(own)} batches the optimizer took {run.steps} steps.")
    if not all(np.isfinite(gradient).all() for gradient in own):
        raise Mismatch("No gradient reaches the model's scores.", hint="loss.backward() for every batch.")
    weights = data.arrays["weights"].astype(float)
    for number, (used, expected) in enumerate(zip(run.arrays["step_gradients"], own, strict=True), start=1):
        # clipping makes a gradient shorter, and leaves its direction; or it makes large numbers smaller
        rest, largest = used - expected, np.abs(used).max()
        clipped = np.clip(expected, -largest, largest)
        across = max(cosine(used, expected), cosine(used, clipped))
        longer = np.linalg.norm(used) / max(np.linalg.norm(expected), 1e-12)
        if across < 0.999 or longer > 1.001:
            if np.abs(used).max() == 0:
                raise Mismatch(
                    f"The step after batch {number} saw no gradient: it was cleared, or not computed yet.",
                    hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
                    look_for="zero_grad(), step()",
                )
            share = (rest * weights).sum() / (weights * weights).sum()
            if share > 0 and np.abs(rest - share * weights).max() < 0.02 * np.abs(rest).max():
                raise Undecided("the loss also asks for small weights; whether it may is a person's")
            raise Mismatch(
                f"The step after batch {number} does not follow the gradient of that batch alone.",
                hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
                look_for="retain_graph, zero_grad(), backward(), loop",
            )
        weights -= data.learning_rate * used


@pytest.mark.component("train_epoch")
@pytest.mark.because("train_epoch_runs")
@pytest.mark.weight(0.2)
def test_train_epoch_learns_the_labels(student, class_names):
    """The loss raises the score of each image's own label, most of all where the model is wrong."""
    import numpy as np

    for again in (True, True, False):  # what mixes images by chance teaches other labels as well
        data, run = epoch(student, class_names) if not again else fresh_epoch(student, class_names)
        first = next(gradients_of_batches(data, run))[0]
        rows = np.arange(len(first))
        scores = data.arrays["features"][: len(first)] @ data.arrays["weights"]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely = (powers / powers.sum(axis=1, keepdims=True))[rows, data.labels[: len(first)]]
        pulls = -first[rows, data.labels[: len(first)]]
        everywhere = -np.concatenate([reached for reached, _ in gradients_of_batches(data, run)])
        taught = everywhere[np.arange(len(everywhere)), data.labels].sum()
        if not np.isfinite(taught):
            raise Mismatch("No gradient reaches the model's scores.", hint="loss.backward() for every batch.")
        hard, middling = pulls[likely < 0.1], pulls[(likely > 0.2) & (likely < 0.7)]
        soft = len(hard) and len(middling) and hard.mean() < 0.7 * middling.mean()
        if taught > 0 and not soft:
            return
    if taught <= 0:
        raise Mismatch(
            "The gradient does not raise the scores of the images' own labels.",
            hint="loss = F.cross_entropy(model(images), labels), and a step that makes it smaller.",
            look_for=LOSSES,
        )
    raise Mismatch(
        "The gradient is smaller for images that the model gets wrong than for those it nearly gets right.",
        hint="F.cross_entropy takes the scores as they are: it applies the softmax itself.",
        look_for=f"softmax() | log_softmax() | Softmax(), {LOSSES}",
    )


def fresh_epoch(student, class_names):
    """Another epoch, on other data."""
    from grader.kit import trainable_data

    data = trainable_data(class_names, (40, 40, 9), features=5, seed=student.next_seed(), scale=2.0)
    return data, student.run("train_epoch", data)


def reports(run):
    """Whether a run of train_epoch appends, returns or prints a number."""
    return bool(run.history or run.returned or any(letter.isdigit() for letter in run.printed))


@pytest.mark.component("train_epoch")
@pytest.mark.because("train_epoch_runs")
@pytest.mark.weight(0.2)
def test_train_epoch_keeps_floats(student, class_names):
    """train_epoch reports the loss, and what it appends to loss_history are numbers."""
    from grader.kit import trainable_data
    from grader.kit.reported import places

    data, run = epoch(student, class_names)
    if run.history_problem:
        raise Mismatch(
            f"The loss_history is not plain: {run.history_problem}.",
            hint="loss_history.append(loss.item()).",
            look_for="loss_history.append()",
        )
    if not reports(run):  # perhaps it begins with the hundredth batch, or the two hundredth
        long = trainable_data(class_names, (2,) * 210, features=5, seed=student.next_seed())
        run = student.run("train_epoch", long)
    if not reports(run):
        raise Mismatch(
            "train_epoch reports no loss: it neither appends, prints nor returns a number.",
            hint="For the first batch and every 100th after it: loss_history.append(loss.item()).",
        )
    if run.history or run.returned or len(run.forwards) != len(data.batch_sizes):
        return
    others = trainable_data(class_names, data.batch_sizes, features=5, seed=student.next_seed(), scale=2.0)
    printed = places([run, student.run("train_epoch", others)])
    if printed and all(place.is_constant for place in printed):
        raise Mismatch(
            "train_epoch prints numbers, and the same ones for other images: none of them is the loss.",
            hint="For the first batch and every 100th after it: loss_history.append(loss.item()).",
        )


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.2)
def test_evaluate_runs(student, class_names):
    """evaluate goes through the loader once and reports numbers, different ones for another data set."""
    from grader.kit import evaluations
    from grader.kit.reported import places

    found = evaluations(student, "evaluate", class_names)
    for data, run in found:
        count, seen = sum(data.batch_sizes), sum(forward.size for forward in run.forwards)
        if seen != count:
            raise Mismatch(f"Of {count} images in the loader, the model was shown {seen}.")
        if not run.history and not run.returned and not any(letter.isdigit() for letter in run.printed):
            raise Mismatch("evaluate reports nothing: it neither prints, appends nor returns a number.")
    reported = places([run for _, run in found])
    if reported and all(place.is_constant for place in reported):
        raise Mismatch(
            "evaluate reports the same numbers for data sets on which the model does better and worse.",
            hint="Compute them from the model's scores and the labels.",
            diagnosis="numbers_not_computed",
        )


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def known_evaluations(student, class_names):
    """evaluate on a model that is right, one that is wrong, and one that is wrong in the last batch alone.

    Returns:
        The runs, and for each image's share of the whole: how many are right of how many.
    """
    import numpy as np

    from grader.kit import RiggedData, classified_data

    def make():
        runs = []
        for right in (127, 0, 120):
            data = classified_data(class_names, (40, 40, 40, 7), accuracy=1.0, seed=student.next_seed())
            said = (data.labels + (np.arange(127) >= right)) % len(class_names)
            table = np.zeros((127, len(class_names)), dtype=np.float32)
            table[np.arange(127), said] = SURE
            arrays = {**data.arrays, "table": table}
            known = RiggedData(data.batch_sizes, class_names, arrays)
            runs.append(student.run("evaluate", known, initial_mode="train" if right else "eval"))
        return runs

    return student.shared("known evaluations", make)


SURE = 12.0  # the score of the class that the model says; the others' are 0


def columns(runs):
    """What stands in the same place of every run's report: tuples of numbers, one for each run."""
    for rows in (
        [run.returned for run in runs],
        [run.history for run in runs],
        [[float(number) for number in NUMBER.findall(run.printed)] for run in runs],
    ):
        fewest = min(map(len, rows))
        yield from zip(*(row[:fewest] for row in rows), strict=True)
        yield from zip(*(row[len(row) - fewest :] for row in rows), strict=True)


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_runs")
@pytest.mark.weight(0.2)
def test_evaluate_tells_a_good_loss_from_a_bad_one(student, class_names):
    """evaluate reports the average loss per image: near 0 for a model that is sure and right."""
    right, wrong, mixed = SURE * 0.15, (0.8 * SURE, 1.05 * SURE), (0.03 * SURE, 0.45 * SURE)
    for values in columns(known_evaluations(student, class_names)):
        if 0 <= values[0] < right and wrong[0] < values[1] < wrong[1] and mixed[0] < values[2] < mixed[1]:
            return
    if any(
        values[0] < -6 and abs(values[1]) < 1 for values in columns(known_evaluations(student, class_names))
    ):
        model = student.build("ViT", **VIT, channels=2, replace={"Transformer": AffineFake()})
        sums = model(student.tensor(2, 2, 15, 15), shape=(2, 7)).exp().sum(dim=1)
        if same(sums, sums.new_ones(2)):  # its scores are logarithms: their negative is the loss
            return
    twice = math.log(math.e + len(class_names) - 1)  # of one probability of 1 and others of 0, as scores
    for values in columns(known_evaluations(student, class_names)):
        if abs(values[0] - (twice - 1)) < 0.05 and abs(values[1] - twice) < 0.05:
            raise Mismatch(
                f"For a model that is sure and right, the average loss is {values[0]:.2f} instead of 0: it "
                "is computed from probabilities, not from scores.",
                hint="F.cross_entropy takes the scores as they are: it applies the softmax itself.",
                look_for="softmax() | Softmax()",
            )
    raise Mismatch(
        "For a model that is sure and right about all images, the average loss is near 0; for one that is "
        f"sure and wrong, it is about {SURE:.0f}. None of the numbers that evaluate reports is like that.",
        hint="Sum F.cross_entropy(scores, labels, reduction='sum') over all batches, and divide once.",
    )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_runs")
@pytest.mark.weight(0.2)
def test_evaluate_counts_what_is_right(student, class_names):
    """evaluate reports the accuracy over all images: all, none and 120 of 127 in three cases."""
    for values in columns(known_evaluations(student, class_names)):
        for unit in (127, 100, 1):
            near = 0.051 if unit == 1 else 0.6 if unit == 100 else 1e-6  # rounded; "acc-0.9" is not a minus
            said = zip(values, (127, 0, 120), strict=True)
            if all(abs(abs(got) - unit * hits / 127) < near for got, hits in said):
                return
    raise Mismatch(
        "For models that are right about all, none and 120 of 127 images (the last batch has 7), evaluate "
        "reports no number that says so.",
        hint="(scores.argmax(dim=1) == labels).sum(), over all batches, divided by the number of images.",
    )


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.2)
def test_evaluate_only_looks(student, class_names):
    """evaluate puts the model in evaluation mode and computes no gradients, which are on again afterwards."""
    runs = known_evaluations(student, class_names)
    forwards = [forward for run in runs for forward in run.forwards]
    if any(forward.training for forward in forwards):
        raise Mismatch(
            "The model was passed in training mode, and was measured in it: dropout is on.",
            hint="model.eval() before the loop over the batches: setting model.training reaches no layer.",
            look_for="_.training | train(), for",
            diagnosis="missing_eval_mode",
        )
    if any(forward.gradients for forward in forwards):
        raise Mismatch(
            "Gradients are computed while the model is measured.",
            hint="with torch.no_grad(): around the loop over the batches.",
            look_for="for",
            diagnosis="gradients_in_evaluation",
        )
    if not all(run.gradients_after for run in runs):
        raise Mismatch(
            "After evaluate gradients are off for the whole program: nothing can be trained any more.",
            hint="with torch.no_grad(): switches them on again by itself.",
            look_for="set_grad_enabled() | __enter__()",
            diagnosis="gradients_left_off",
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_runs")
@pytest.mark.weight(0.2)
def test_evaluate_appends_a_number(student, class_names):
    """evaluate appends a number to loss_history, a different one for another model."""
    runs = known_evaluations(student, class_names)
    for run in runs:
        if run.history_problem:
            raise Mismatch(
                f"The loss_history is not plain: {run.history_problem}.",
                hint="loss_history.append(loss.item()).",
                look_for="loss_history.append()",
            )
        if not run.history and not run.returned:
            raise Mismatch(
                "evaluate appends nothing to loss_history.",
                hint="loss_history.append(average_loss), once, at its end.",
                diagnosis="loss_not_appended",
            )
    if len({(run.history, run.returned) for run in runs}) == 1:
        raise Mismatch(
            "What evaluate appends is the same for a model that is right and one that is wrong.",
            look_for="loss_history.append()",
        )
