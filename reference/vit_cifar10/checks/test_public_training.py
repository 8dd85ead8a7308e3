"""Public checks of the table of parameters, the schedule, epochs, evaluation and fit."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import (
    Fake,
    Mismatch,
    Undecided,
    batches,
    measured_by_epochs,
    numbered_images,
    trainable_data,
)


def numbers_of_table(student, model):
    """The numbers of the table's rows."""
    found = []
    for row in student.call("parameter_table", model).returned.items(None, "rows"):
        name, number = row.items(2, "values: a name and a number")
        name.text()
        found.append(number.whole_number(0))
    return found


@pytest.mark.component("parameter_table")
@pytest.mark.weight(0.25)
def test_table_has_names_and_numbers(student):
    """parameter_table gives pairs of a name and a number, which add up to all parameters."""
    made = student.build("VisionTransformer", image_size=8, num_classes=5, dim=12, depth=2, heads=3)
    rows = numbers_of_table(student, made)
    found = sum(rows)
    count, own = (
        sum(int(np.prod(p.shape)) for p in made.parameters if not bare or "." not in p.name)
        for bare in (False, True)
    )
    if found == 2 * count and rows[-1] == count:
        raise Mismatch(
            f"The last row of the table has {count} parameters, as many as all others together: with the "
            "total, the numbers add up to twice as many as there are.",
            hint="Leave the total out, or print it beside the table.",
            look_for="append(_) | extend(), return",
        )
    if found > count:
        raise Mismatch(
            f"The numbers of the table add up to {found}; the model has {count} parameters: some are "
            "counted twice.",
            hint="named_modules has parts and the parts within them; named_parameters has each parameter "
            "once.",
            look_for="named_modules() | modules()",
        )
    if found != count:
        raise Mismatch(
            f"The numbers of the table add up to {found}; the model has {count} parameters"
            + (
                ", of which just the missing ones are outside any layer."
                if own and found == count - own
                else "."
            ),
            hint="Class token and positions are in no layer: named_children misses them, named_parameters "
            "has all.",
            look_for="named_children() | children() | named_modules() | modules()",
        )
    made.call("requires_grad_", False)
    if (unlearned := sum(numbers_of_table(student, made))) != count:
        raise Mismatch(
            f"Where nothing requires gradients, the numbers of the table add up to {unlearned}; the model "
            f"has {count} parameters.",
            hint="Count those that are not learned as well.",
            look_for="requires_grad",
        )


def factors(student, steps, warmup, total):
    """What warmup_cosine gives at these steps."""
    return [student.call("warmup_cosine", step, warmup, total).returned.number() for step in steps]


@pytest.mark.component("warmup_cosine")
@pytest.mark.weight(0.25)
def test_schedule_is_a_share(student):
    """The factor lies between 0 and 1."""
    for step in (0, 5, 10, 15):
        student.call("warmup_cosine", step, 5, 15).returned.number(0, 1)


@pytest.mark.component("warmup_cosine")
@pytest.mark.weight(0.25)
def test_schedule_warms_up(student):
    """In the warm-up the factor rises in a line from 0 to 1; without a warm-up it begins at 1."""
    found = factors(student, range(5), 4, 12)
    if not np.allclose(found[:4], [0, 0.25, 0.5, 0.75], atol=1e-4):
        raise Mismatch(
            "With warmup_steps=4 and total_steps=12, the factor is "
            f"{', '.join(f'{each:.2f}' for each in found[:4])} at the steps 0 to 3; it should be 0.00, "
            "0.25, 0.50, 0.75.",
            hint="The steps count from 0: at step 0 the factor is 0.",
            look_for="step + 1",
        )
    begin = factors(student, [0], 0, 12)[0]
    for value, step in ((found[4], 4), (begin, 0)):
        if abs(value - 1) > 1e-4:
            raise Mismatch(
                f"Where the warm-up ends, at step {step} with warmup_steps={step} and total_steps=12, the "
                f"factor is {value:.2f}; it should be 1.",
                hint="How far the cosine is counts from the end of the warm-up, not from step 0.",
                look_for="step / total_steps",
            )


@pytest.mark.component("warmup_cosine")
@pytest.mark.because("schedule_warms_up")
@pytest.mark.weight(0.25)
def test_schedule_falls_by_half_a_cosine(student):
    """After the warm-up the factor falls by half a cosine: slowly, then fast, then slowly again."""
    found = factors(student, (6, 8, 10), 4, 12)
    if not np.allclose(found, [0.8536, 0.5, 0.1464], atol=1e-3):
        kind = ""
        if np.allclose(found, [0.75, 0.5, 0.25], atol=1e-3):
            kind = "a straight line"
        elif np.allclose(found, [0.9239, 0.7071, 0.3827], atol=1e-3):
            kind = "a quarter of a cosine"
        raise Mismatch(
            "With warmup_steps=4 and total_steps=12, the factor at the steps 6, 8 and 10 is "
            f"{', '.join(f'{each:.3f}' for each in found)}{f': that is {kind}' if kind else ''}. Half a "
            "cosine gives 0.854, 0.500 and 0.146.",
            hint="cos(0) is 1 and cos(pi) is -1: half a cosine goes from the one to the other, and that is "
            "moved and shrunk to go from 1 to 0.",
            look_for="cos(), 1 - _",
        )


@pytest.mark.component("warmup_cosine")
@pytest.mark.because("schedule_falls_by_half_a_cosine")
@pytest.mark.weight(0.25)
def test_schedule_ends_at_zero(student):
    """At total_steps the factor is 0, and it stays there."""
    for step, found in zip((12, 15, 20), factors(student, (12, 15, 20), 4, 12), strict=True):
        if abs(found) > 1e-4:
            raise Mismatch(
                f"With warmup_steps=4 and total_steps=12, the factor at step {step} is {found:.2f}; from "
                "total_steps on it should be 0.",
                hint="Past the end a cosine rises again: return 0 where step >= total_steps.",
                look_for="cos()",
            )


NAMES, SIZES = ("a", "b", "c", "d"), (8, 8, 8, 2)


def numbers(value, *shape):
    """What a student gives as an array, whole numbers or not."""
    try:
        return value.array(*shape, whole=True)
    except Mismatch:
        return value.array(*shape, finite=False)


def epoch(student):
    """(data, run) of an epoch over a linear model, whose gradients are known: one for several checks."""

    def make():
        data = trainable_data(NAMES, SIZES, features=5, seed=student.next_seed(), scale=2.0)
        return data, student.run("train_epoch", data)

    return student.shared("an epoch of the public checks", make)


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.25)
def test_epoch_returns_two_numbers(student):
    """train_epoch returns the mean loss and the accuracy."""
    _, run = epoch(student)
    if len(run.returned) != 2:
        raise Mismatch(
            f"train_epoch returns {len(run.returned)} numbers; it should return two: the mean loss, and the "
            "accuracy."
        )
    if not 0 <= run.returned[1] <= 1:
        raise Mismatch(
            f"train_epoch returns the accuracy {run.returned[1]:g}; it should be from 0 to 1.",
            hint="How many are right, divided by how many there are: no percentage.",
            look_for="100 * _ | _ * 100 | 100.0 * _ | _ * 100.0, return",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.25)
def test_epoch_takes_a_step_for_each_batch(student):
    """For each batch there is one step of the optimizer and one of the schedule."""
    _, run = epoch(student)
    count, schedule = len(SIZES), run.events.count("schedule")
    if run.steps != count:
        raise Mismatch(
            f"Steps that the optimizer takes for a loader of {count} batches: {run.steps}.",
            hint="optimizer.step() once for every batch, after loss.backward().",
            look_for="step(), backward()" if run.steps else "backward()",
        )
    if schedule != count:
        raise Mismatch(
            f"Steps that the schedule takes for a loader of {count} batches: {schedule}.",
            hint="if scheduler is not None: scheduler.step(), after each batch.",
            look_for="scheduler.step(), optimizer.step()",
        )
    if run.events.index("schedule") < run.events.index("step"):
        raise Mismatch(
            "The schedule takes its step before the optimizer: its first rate is never used.",
            hint="optimizer.step() first, then scheduler.step().",
            look_for="scheduler.step()",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.25)
def test_epoch_trains_in_training_mode(student):
    """train_epoch puts the model into training mode, whatever mode it comes in."""
    _, run = epoch(student)
    if not all(forward.training for forward in run.forwards):
        raise Mismatch(
            "The model is trained in evaluation mode: dropout is off, and batch norm does not learn.",
            hint="model.train() before the loop over the batches.",
            look_for="eval() | train(False), for",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.because("epoch_takes_a_step_for_each_batch")
@pytest.mark.weight(0.25)
def test_epoch_clears_the_gradients(student):
    """Every step follows the gradient of its own batch alone: gradients are cleared between the batches."""
    data, run = epoch(student)
    if run.steps != len(SIZES):
        raise Mismatch("The gradients can be looked at when the optimizer takes a step for each batch.")
    start = 0
    for number, (size, used) in enumerate(zip(SIZES, run.arrays["step_gradients"], strict=True), start=1):
        rows = slice(start, start + size)
        own = data.arrays["features"][rows].T @ run.arrays["logit_gradients"][rows]
        start += size
        length = max(np.linalg.norm(own), 1e-12)
        # clipping makes a gradient shorter, and leaves its direction
        across = float((used * own).sum()) / max(np.linalg.norm(used) * length, 1e-12)
        largest = np.abs(used).max()  # or its largest numbers smaller
        if np.abs(used - own.clip(-largest, largest)).max() < 1e-3 * np.abs(own).max():
            continue
        if across < 0.999 or np.linalg.norm(used) / length > 1.001:
            raise Mismatch(
                f"The step after batch {number} does not follow the gradient of that batch alone.",
                hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
                look_for="retain_graph, zero_grad(), backward(), loop",
            )


@pytest.mark.component("train_epoch")
@pytest.mark.because(
    "epoch_returns_two_numbers", "epoch_takes_a_step_for_each_batch", "epoch_clears_the_gradients"
)
@pytest.mark.weight(0.25)
def test_epoch_means_over_images(student):
    """The loss is the mean over all images, as it was when each batch was trained on."""
    data, run = epoch(student)
    if run.steps != len(SIZES) or len(run.returned) != 2:
        raise Mismatch("The loss can be looked at when train_epoch takes its steps and returns two numbers.")
    # the linear model before each step, and its loss for each image of the batch
    weights, losses, later, start = torch.from_numpy(data.arrays["weights"]).clone(), [], [], 0
    for size, gradient in zip(SIZES, run.arrays["step_gradients"], strict=True):
        rows = slice(start, start + size)
        stepped = weights - data.learning_rate * torch.tensor(gradient)
        for kept, used in ((losses, weights), (later, stepped)):
            scores = torch.from_numpy(data.arrays["features"][rows]) @ used
            logarithms = scores - scores.logsumexp(dim=1, keepdim=True)
            kept.append(-logarithms[torch.arange(size), torch.from_numpy(data.labels[rows])])
        weights, start = stepped, start + size
    found, means = run.returned[0], [float(each.mean()) for each in losses]
    expected = float(torch.cat(losses).mean())
    if abs(found - expected) < 1e-4 * max(1.0, expected):
        return
    for value, said, look_for in (
        (np.mean(means), "the mean of the batches' means", "_ / len(), mean()"),
        (means[-1], "that of the last batch alone", "return"),
        (sum(means), "the sum of the batches' means", "return"),
        (float(torch.cat(losses).sum()), "the sum over all images", "return"),
        (float(torch.cat(later).mean()), "that after each batch's step, by the changed weights", "model()"),
    ):
        if abs(found - value) < 1e-4 * max(1.0, value):
            raise Mismatch(
                f"For batches of 8, 8, 8 and 2 images the loss is {said}, {found:.3f}; the mean over images "
                f"is {expected:.3f}.",
                hint="Add up loss.item() * len(labels), and divide by the number of images at the end.",
                look_for=look_for,
            )
    raise Mismatch(
        f"For batches of 8, 8, 8 and 2 images train_epoch returns the loss {found:.3f}; the mean over "
        f"images, as it was when each batch was trained on, is {expected:.3f}.",
        hint="Add up loss.item() * len(labels), and divide by the number of images at the end.",
        look_for="return",
    )


# three images in batches of two and one: two are right, the second is wrong
ASKED = [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]]
SHARES = [[0.9094, 0.0453, 0.0453], [0.1065, 0.7870, 0.1065], [0.0177, 0.0177, 0.9647]]
TRUTH, LOSS, LOSS_OF_BATCHES, LOSS_OF_SHARES = [0, 0, 2], 0.7901, 0.6016, 0.8552


def evaluation(student):
    """The outcome of evaluate on three images of which all is known."""

    def criterion(scores, targets):
        return F.cross_entropy(torch.as_tensor(scores).float(), torch.as_tensor(targets))

    def make():
        images = torch.from_numpy(numbered_images(3, student.next_seed(), (3, 16, 16)))
        return student.call(
            "evaluate",
            Fake.rows(torch.tensor(ASKED)),
            batches(images, torch.tensor(TRUTH), [2, 1]),
            Fake.callback(criterion, kind="function", name="criterion"),
            torch.device("cpu"),
        )

    return student.shared("an evaluation of the public checks", make)


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.25)
def test_evaluate_returns_a_dictionary(student):
    """evaluate returns loss, accuracy, targets, predictions and probabilities."""
    returned = evaluation(student).returned
    returned.at("loss").number(0)
    accuracy = returned.at("accuracy").number()
    if not 0 <= accuracy <= 1:
        raise Mismatch(
            f"'accuracy' is {accuracy:g}; it should be from 0 to 1.",
            hint="How many are right, divided by how many there are: no percentage.",
            look_for="100 * _ | _ * 100 | 100.0 * _ | _ * 100.0",
        )
    for name in ("targets", "predictions"):
        returned.at(name).items(3, name)
    returned.at("probabilities").array(3, 3)


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_returns_a_dictionary")
@pytest.mark.weight(0.25)
def test_evaluate_gives_probabilities(student):
    """The probabilities are the softmax of the model's scores: none is negative, and a row adds up to 1."""
    found = evaluation(student).returned.at("probabilities").array(3, 3)
    if np.allclose(found, SHARES, atol=1e-3):
        return
    if np.allclose(found, ASKED, atol=1e-4):
        raise Mismatch(
            "'probabilities' are the scores that the model gave.",
            hint="scores.softmax(dim=1)",
            look_for="probabilities, return",
        )
    if np.allclose(np.exp(found), SHARES, atol=1e-3):
        raise Mismatch(
            "'probabilities' are logarithms of probabilities.",
            hint="softmax, not log_softmax.",
            look_for="log_softmax()",
        )
    # of the batch of two images, and of that of one
    across = all(np.allclose(batch.sum(axis=0), 1, atol=1e-3) for batch in (found[:2], found[2:]))
    raise Mismatch(
        f"For scores of 3, 0, 0 the probabilities are {', '.join(f'{each:.3f}' for each in found[0])}; "
        "their softmax is 0.909, 0.045, 0.045."
        + (" In each batch, a column adds up to 1, not a row: the softmax is over the images." * across),
        hint="dim=1, over the classes of an image, not dim=0." if across else "scores.softmax(dim=1)",
        look_for="softmax(0) | softmax(dim=0) | log_softmax(0) | log_softmax(dim=0), softmax() | Softmax() | "
        "log_softmax() | exp()",
    )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_returns_a_dictionary", "evaluate_gives_probabilities")
@pytest.mark.weight(0.25)
def test_evaluate_means_over_images(student):
    """Loss and accuracy are means over images; targets and predictions stand in the loader's order."""
    returned = evaluation(student).returned
    targets, predictions = (numbers(returned.at(name), 3).tolist() for name in ("targets", "predictions"))
    for name, found, expected in (("targets", targets, TRUTH), ("predictions", predictions, [0, 1, 2])):
        if found != expected:
            raise Mismatch(
                f"For three images, '{name}' are {', '.join(f'{each:g}' for each in found)}; they should be "
                f"{', '.join(map(str, expected))}.",
                hint="In the loader's order: the labels, and for each image the class with the largest "
                "score.",
            )
    accuracy, loss = (returned.at(name).number() for name in ("accuracy", "loss"))
    if abs(accuracy - 2 / 3) > 1e-4:
        raise Mismatch(
            f"Two of three images are right, and 'accuracy' is {accuracy:.3f}.",
            hint="How many are right over all batches, divided by the number of images.",
        )
    for value, said, look_for in (
        (LOSS_OF_BATCHES, "the mean of the batches' means", "_ / len(), mean()"),
        (3 * LOSS, "the sum over the images", ""),
        (2 * LOSS_OF_BATCHES, "the sum of the batches' means", ""),
        (LOSS_OF_SHARES, "that of probabilities, of which the criterion takes a softmax again", "softmax()"),
        (loss, "", ""),
    ):
        if abs(loss - LOSS) > 1e-3 and abs(loss - value) < 1e-3:
            raise Mismatch(
                f"For three images in batches of two and one, 'loss' is {loss:.3f}"
                f"{f', {said}' if said else ''}; the mean over images is {LOSS:.3f}.",
                hint="A batch's loss counts as often as the batch has images.",
                look_for=look_for,
            )


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.25)
def test_evaluate_only_looks(student):
    """evaluate asks the model in evaluation mode, and computes no gradients."""
    outcome = evaluation(student)
    calls = outcome.calls_of("model")
    if any(call.training for call in calls):
        raise Mismatch(
            "The model is asked in training mode: dropout is on, and batch norm uses each batch.",
            hint="model.eval() before the loop over the batches.",
            look_for="train(), no_grad() | inference_mode(), for",
        )
    if any(call.gradients for call in calls):
        raise Mismatch(
            "Gradients are computed while the model is measured, which takes memory for nothing.",
            hint="with torch.no_grad(): around the loop over the batches.",
            look_for="enable_grad(), for",
        )
    if not outcome.gradients_after:
        raise Mismatch(
            "After evaluate, no gradients are computed any more: whatever trains next fails.",
            hint="with torch.no_grad(): around the loop over the batches ends by itself.",
            look_for="set_grad_enabled()",
        )


def is_of_training(student, call):
    """Whether a call of evaluate gets training images: those are in two batches, the others in one."""
    given = (*call.args, *call.kwargs.values())
    loader = next((value for value in given if getattr(value, "kind", "") == "object"), None)
    if loader is None:
        return False
    return student.attempted(lambda: loader.call("__len__").returned.whole_number()) == 2


def fitted(student, accuracies, losses=()):
    """(the epoch whose weights are left, outcome) of a fit with these validation accuracies.

    Args:
        losses: On the validation images; without, the higher the accuracy, the lower the loss.
    """
    epochs, losses = len(accuracies), losses or [1 - value for value in accuracies]
    images = torch.from_numpy(numbered_images(4, student.next_seed(), (3, 16, 16)))
    loaders = {
        "train": batches(images[:2], torch.tensor([0, 1]), [1, 1]),
        "validation": batches(images[2:], torch.tensor([1, 0]), [2]),
    }
    # each call of train_epoch fills the weights with its number, and gives a better training accuracy
    trained = [(1 - n / 100, n / 100) for n in range(1, epochs + 1)]
    models = []

    def fit(answers):
        evaluations = [
            {
                "loss": loss, "accuracy": accuracy, "targets": torch.tensor([0, 1]),
                "predictions": torch.tensor([0, 1]), "probabilities": torch.full((2, 2), 0.5),
            }
            for loss, accuracy in answers
        ]  # fmt: skip
        # a fit may look its settings up by the class's name
        fake = Fake.script([torch.zeros(2, 2)], name="VisionTransformer", parameters={"head.weight": (2, 2)})
        models.append(student.keep(fake, "fit"))
        fakes = {"train_epoch": Fake.script(trained, marks=True), "evaluate": Fake.script(evaluations)}
        return student.call("fit", models[-1], loaders, epochs, torch.device("cpu"), replace=fakes)

    outcome = measured_by_epochs(
        fit,
        lambda call: {"train" if is_of_training(student, call) else "validation"},
        trains="train_epoch",
        measures="evaluate",
        rows=list(zip(losses, accuracies, strict=True)),
        # training images get worse and worse
        training=[(n / 100, 1 - n / 100) for n in range(1, epochs + 1)],
        before=(2.0, 0.05),
        epochs=epochs,
    )
    if outcome is None:
        raise Undecided("fit measures something else each time, so a person has to look.")
    left = student.component(models[-1]).weights()["head.weight"].unique().tolist()
    return left[0] if len(left) == 1 else float("nan"), outcome


@pytest.mark.component("fit")
@pytest.mark.weight(0.25)
def test_fit_trains_each_epoch(student):
    """fit trains for as many epochs as it is asked to, and returns its history."""
    _, outcome = fitted(student, [0.4, 0.6])
    calls = outcome.calls_of("train_epoch")
    if not calls and not outcome.calls_of("VisionTransformer"):
        raise Mismatch(
            "fit(..., epochs=2) trains nothing: it calls neither train_epoch nor the model.",
            hint="In each epoch, call train_epoch with the training images, then evaluate with the others.",
            look_for="for, return",
        )
    if calls and len(calls) != 2:
        raise Mismatch(f"fit(..., epochs=2) trains {len(calls)} epochs.")


@pytest.mark.component("fit")
@pytest.mark.because("fit_trains_each_epoch")
@pytest.mark.weight(0.25)
def test_fit_measures_on_validation_images(student):
    """evaluate gets the validation images."""
    _, outcome = fitted(student, [0.4, 0.6])
    epoch, of_training = 0, {1: set(), 2: set()}
    for call in outcome.calls:
        epoch += call.fake == "train_epoch"
        if call.fake == "evaluate" and epoch in of_training:
            of_training[epoch].add(is_of_training(student, call))
    if {True} in of_training.values():
        raise Mismatch(
            "evaluate gets the training images: by them, the epoch that learned most by heart looks best.",
            hint='evaluate(model, loaders["validation"], criterion, device)',
            look_for="evaluate()",
        )


@pytest.mark.component("fit")
@pytest.mark.because("fit_trains_each_epoch", "fit_measures_on_validation_images")
@pytest.mark.weight(0.25)
def test_fit_leaves_the_best_weights(student):
    """The model is left with the weights of the best epoch by validation accuracy, of equals the first."""
    for accuracies, best in (([0.2, 0.6, 0.4, 0.5], 2), ([0.3, 0.7, 0.7, 0.1], 2)):
        left, outcome = fitted(student, accuracies)
        if len(outcome.calls_of("train_epoch")) != len(accuracies) or not outcome.calls_of("evaluate"):
            return  # it uses the other parts in a way of its own: that is looked at when it is graded
        if left == best:
            continue
        said = ", ".join(map(str, accuracies))
        if left == len(accuracies):
            raise Mismatch(
                f"With the validation accuracies {said}, the model is left with the weights of the last "
                "epoch.",
                hint="model.state_dict() refers to the weights, which go on changing: keep a copy of each, "
                "or copy.deepcopy of it, and load it at the end.",
                look_for="_.state_dict(), end",
            )
        if left == 3 and best == 2 and accuracies[1] == accuracies[2]:
            raise Mismatch(
                f"With the validation accuracies {said}, the weights of epoch 3 are kept; of equals, the "
                "first should be.",
                hint="Keep the weights only if the accuracy is larger than the best one so far: >, not >=.",
                look_for="_ >= _ | _ <= _",
            )
        worst = left == left and accuracies[int(left) - 1] == min(accuracies)
        raise Mismatch(
            f"With the validation accuracies {said}, the model is left with the weights of epoch {left:.0f}"
            + (", the worst one." if worst else "; the best one is epoch 2.")
            if left == left and left
            else f"With the validation accuracies {said}, the weights left are those of no epoch.",
            hint="Keep a copy of the weights whenever the validation accuracy is larger than before.",
            look_for="_ < best | _ <= best | best > _, if" if worst else "",
        )
    left, _ = fitted(student, [0.2, 0.6, 0.4, 0.5], losses=[0.9, 0.8, 0.3, 0.7])
    if left == 3:
        raise Mismatch(
            "With the validation accuracies 0.2, 0.6, 0.4, 0.5 and losses 0.9, 0.8, 0.3, 0.7, the weights "
            "of epoch 3 are kept: the best epoch is chosen by its loss.",
            hint="The best epoch is the one with the highest validation accuracy.",
            look_for="_ < best | best > _ | min(), loss",
        )
