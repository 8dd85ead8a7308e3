"""Public checks of the mixed loss, an epoch of training, and evaluation."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import Fake, Library, Mismatch, batches, numbered_images

CPU = torch.device("cpu")


DEPTH = 4  # blocks of the given model

# --- the loss ---------------------------------------------------------------------------------------------


def scores_with_losses(*losses):
    """Scores of one image whose cross-entropy is known for the first classes; one more class has the rest."""
    likely = torch.tensor([math.exp(-each) for each in losses])
    return torch.cat([likely, 1 - likely.sum()[None]]).log()


LOSS_SCORES = scores_with_losses(1, 4, 7, 3)  # of the classes 0 to 3; class 4 has the rest


def known_loss(student, lam, gradients=False, smoothing=0.0):
    """mixed_loss of images whose labels_a have the loss 1, and whose labels_b have the loss 3."""
    criterion = student.keep(Library("torch.nn.CrossEntropyLoss", label_smoothing=smoothing))
    a, b = torch.tensor([0, 0, 0]), torch.tensor([3, 3, 3])
    scores = LOSS_SCORES.repeat(3, 1)
    return student.call("mixed_loss", criterion, scores, a, b, lam, gradients=gradients)


@pytest.mark.component("mixed_loss")
@pytest.mark.weight(0.25)
def test_mixed_loss_is_a_number(student):
    """mixed_loss gives a number, with gradients."""
    criterion = student.keep(Library("torch.nn.CrossEntropyLoss"))
    labels = torch.tensor([0, 1, 2])
    outcome = student.call(
        "mixed_loss", criterion, student.tensor(3, 4), labels, labels.flip(0), 0.3, gradients=True
    )
    outcome.returned.number()
    if not outcome.attached:
        raise Mismatch(
            "What mixed_loss returns has no gradients.",
            hint="No .item(), no .detach().",
            look_for="item() | detach() | float() | no_grad(), return",
        )


@pytest.mark.component("mixed_loss")
@pytest.mark.because("mixed_loss_is_a_number")
@pytest.mark.weight(0.25)
def test_mixed_loss_weighs_both_labels(student):
    """The loss of labels_a counts lam, that of labels_b the rest."""
    value = known_loss(student, 0.25).returned.number()
    if abs(value - 2.5) < 1e-3:
        return
    wrong = {
        1.5: "the shares are exchanged",
        2.0: "both count one half, whatever lam is",
        4.0: "both are added without their shares",
        1.0: "labels_b do not count",
        3.0: "labels_a do not count",
        7.0: "that is the loss of class 2, which lies between the labels 0 and 3",
    }
    why = next((clause for number, clause in wrong.items() if abs(value - number) < 1e-3), "")
    raise Mismatch(
        f"For lam = 0.25, labels_a with the loss 1 and labels_b with the loss 3, mixed_loss gives "
        f"{value:.2f}{f' ({why})' if why else ''}; it should be 2.50.",
        hint="Mix the losses, not the labels."
        if abs(value - 7) < 1e-3
        else "criterion gives the loss of labels_a, and that of labels_b: weigh them by lam and 1 - lam.",
        look_for="log_softmax(), return",
    )


@pytest.mark.component("mixed_loss")
@pytest.mark.because("mixed_loss_is_a_number", "mixed_loss_weighs_both_labels")
@pytest.mark.weight(0.25)
def test_mixed_loss_asks_its_criterion(student):
    """Both losses are those of the criterion, which may smooth labels."""
    scores = LOSS_SCORES[None]
    for lam, label, name in ((1.0, 0, "labels_a"), (0.0, 3, "labels_b")):
        value = known_loss(student, lam, smoothing=0.2).returned.number()
        expected = F.cross_entropy(scores, torch.tensor([label]), label_smoothing=0.2).item()
        if abs(value - expected) > 1e-3:
            raise Mismatch(
                f"With lam = {lam:g} and a criterion that smooths labels, mixed_loss gives {value:.3f}; the "
                f"criterion gives {expected:.3f} for {name}.",
                hint="Call the criterion that is given, with logits and labels as they are.",
                look_for="cross_entropy() | CrossEntropyLoss(), log_softmax()",
            )


def mixes_losses(student):
    """Whether the student's own mixed_loss is right where its losses are known."""
    found = [student.attempted(lambda lam=lam: known_loss(student, lam, True)) for lam in (0.25, 1.0)]
    return all(
        each is not None and each.attached and abs(each.returned.number() - right) < 1e-3
        for each, right in zip(found, (2.5, 1.0), strict=True)
    )


# --- training and evaluation ------------------------------------------------------------------------------

# an image of class 0 has the loss 1, one of class 1 the loss 4; class 0 is what the scores say
KNOWN_SCORES = torch.cat(
    [torch.tensor([-1.0, -4.0]), torch.full((3,), (1 - math.exp(-1) - math.exp(-4)) / 3).log()]
)
LABELS = torch.tensor([0, 0, 0, 0, 1, 1])  # in batches of 4 and 2
LOSS_OF_SHARES = F.cross_entropy(KNOWN_SCORES.softmax(dim=0).repeat(6, 1), LABELS).item()


def told_of(losses):
    """How a mean over images of batches with the losses 1 and 4 is often computed wrongly."""
    reasons = (
        "that is the mean of the two batches' means; a batch of 2 images counts as much as one of 4",
        "that is the sum of the two batches' means",
        "that is the loss of the last batch alone",
        "that is the sum over all images",
    )
    return dict(zip(losses, reasons, strict=True))


def why_wrong(value):
    """How a loss came about that should have been 2: (the clause, what to try, the line)."""
    if abs(value - LOSS_OF_SHARES) < 0.02:
        clause = "that is the loss of the softmax of the scores; the criterion computes a softmax itself"
        return clause, "criterion(logits, labels), with the scores as the model gives them.", "softmax()"
    told = told_of((2.5, 5.0, 4.0, 12.0))
    clause = next((words for number, words in told.items() if abs(value - number) < 0.02), "")
    hint = "Add up each batch's loss times its number of images, and divide by the number of all images."
    if not clause:
        hint = (
            "Give the criterion the model's scores and the labels as they are; the loss is the mean over all."
        )
    return clause, hint, "_ / len(), return" if abs(value - 2.5) < 0.02 else "return"


def rigged_epoch(student, labels, sizes, mixes=None):
    """train_one_epoch of a model that gives every image the known scores, and cannot move.

    Args:
        mixes: What `mix` gives for each batch: labels_a, labels_b, lam. The images are those of the loader.
    """
    model = student.build("build_model", len(KNOWN_SCORES))
    model.set_weights({"head.weight": torch.zeros(len(KNOWN_SCORES), 96), "head.bias": KNOWN_SCORES})
    optimizer = Library("torch.optim.SGD", model, lr=0.0)
    images = student.tensor(len(labels), 3, 32, 32)
    further = {}
    if mixes:
        answers = [(part, *mix) for part, mix in zip(images.split(sizes), mixes, strict=True)]
        further = {"mix": Fake.script(answers, kind="function", name="mix")}
    loader, criterion = batches(images, labels, sizes), Library("torch.nn.CrossEntropyLoss")
    return student.call("train_one_epoch", model, loader, optimizer, criterion, CPU, **further)


def require_share(accuracy):
    """Check that an accuracy is between 0 and 1."""
    value = accuracy.number(0)
    if value > 1:
        raise Mismatch(
            f"The accuracy is {value:.2f}; it should be between 0 and 1.",
            hint="The hits, divided by the number of images.",
            look_for="100 * _ | _ * 100 | 100.0 * _ | _ * 100.0, return",
        )


@pytest.mark.component("train_one_epoch")
@pytest.mark.weight(0.25)
def test_epoch_gives_two_numbers(student):
    """train_one_epoch gives a loss and an accuracy, and the model learns."""
    model = student.build("build_model", 4)
    before = model.weights()
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.1), Library("torch.nn.CrossEntropyLoss")
    loader = batches(student.tensor(6, 3, 32, 32), torch.tensor([0, 1, 2, 3, 0, 1]), [4, 2])
    found = student.call("train_one_epoch", model, loader, optimizer, criterion, CPU).returned.items(2)
    found[0].number(0)
    require_share(found[1])
    if torch.equal(before["head.weight"], model.weights()["head.weight"]):
        raise Mismatch(
            "After train_one_epoch, the model's weights are what they were.",
            hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
            look_for="step(), backward()",
        )


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers")
@pytest.mark.weight(0.25)
def test_epoch_averages_over_images(student):
    """Loss and accuracy are means over all images, also if the last batch is smaller."""
    found = rigged_epoch(student, LABELS, [4, 2]).returned.items(2)
    loss, accuracy = found[0].number(), found[1].number()
    if abs(accuracy - 4 / 6) > 0.01:
        raise Mismatch(
            f"Of 6 images the model is right about 4, and the accuracy is {accuracy:.3f}.",
            hint="Add up the hits of all batches, and divide by the number of all images.",
            look_for="return",
        )
    if abs(loss - 2) > 0.02 and mixes_losses(student):
        clause, hint, look_for = why_wrong(loss)
        raise Mismatch(
            "4 images have the loss 1, and 2 images in another batch the loss 4: the mean over images is 2. "
            f"train_one_epoch returns {loss:.2f}{f': {clause}' if clause else ''}.",
            hint=hint,
            look_for=look_for,
        )


def mixed_epochs(student):
    """Two epochs of one batch: the labels are class 2, mix makes them 0 and 1, and then 1 and 0, by 0.75."""

    def make():
        zeros, ones = torch.zeros(4, dtype=torch.int64), torch.ones(4, dtype=torch.int64)
        try:
            return [
                rigged_epoch(student, zeros + 2, [4], [(a, b, 0.75)])
                for a, b in ((zeros, ones), (ones, zeros))
            ]
        except Mismatch as error:
            return error

    found = student.shared("mixed epochs", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers", "epoch_averages_over_images")
@pytest.mark.weight(0.25)
def test_epoch_trains_with_both_labels(student):
    """With `mix`, the loss is that of the mixed images: of labels_a and labels_b by their shares."""
    epochs = mixed_epochs(student)
    if not all(epoch.calls_of("mix") for epoch in epochs):
        raise Mismatch(
            "`mix` is given, and never called.",
            hint="if mix is not None: images, labels_a, labels_b, lam = mix(images, labels), for each batch.",
            look_for="loop",
        )
    losses = [epoch.returned.items(2)[0].number() for epoch in epochs]
    if np.allclose(losses, [1.75, 3.25], atol=0.02) or not mixes_losses(student):
        return
    why = ""
    if abs(losses[0] - 1) < 0.02 and abs(losses[1] - 4) < 0.02:
        why = "it is that of labels_a alone"
    elif abs(losses[0] + float(KNOWN_SCORES[2])) < 0.02 and abs(losses[0] - losses[1]) < 0.02:
        why = "it is that of the labels before mixing"
    raise Mismatch(
        f"Where labels_a have the loss 1, labels_b the loss 4 and lam is 0.75, the loss is {losses[0]:.2f}; "
        f"it should be 1.75{f': {why}' if why else ''}.",
        hint="mixed_loss(criterion, logits, labels_a, labels_b, lam), with what mix returned.",
        look_for="criterion()",
    )


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers", "epoch_averages_over_images", "epoch_trains_with_both_labels")
@pytest.mark.weight(0.25)
def test_epoch_counts_hits_by_their_shares(student):
    """With `mix`, hits of labels_a count lam, and hits of labels_b count 1 - lam."""
    first, second = (epoch.returned.items(2)[1].number() for epoch in mixed_epochs(student))
    if abs(first - 0.75) < 0.01 and abs(second - 0.25) < 0.01:
        return
    wrong = {
        (1.0, 1.0): "a prediction of either label counts as a whole hit",
        (1.0, 0.0): "hits of labels_b do not count, and hits of labels_a count as whole ones",
        (0.75, 0.0): "hits of labels_b do not count",
        (0.25, 0.75): "the shares are exchanged",
    }
    why = next(
        (words for (a, b), words in wrong.items() if abs(first - a) < 0.01 and abs(second - b) < 0.01),
        "",
    )
    raise Mismatch(
        f"With lam = 0.75 the accuracy is {first:.2f} if the model says labels_a for all images, and "
        f"{second:.2f} if it says labels_b{f' ({why})' if why else ''}; it should be 0.75 and 0.25.",
        hint="lam * hits of labels_a + (1 - lam) * hits of labels_b",
        look_for="_ == labels_a | labels_a == _, _ == _",
    )


def trained_weights(student, weights, *parts):
    """The weights after train_one_epoch from the given ones, with an optimizer of its own."""
    model = student.build("build_model", 4)
    model.set_weights(weights)
    loader = batches(
        torch.cat([images for images, _ in parts]),
        torch.cat([labels for _, labels in parts]),
        [len(labels) for _, labels in parts],
    )
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.1), Library("torch.nn.CrossEntropyLoss")
    student.call("train_one_epoch", model, loader, optimizer, criterion, CPU)
    return model.weights()


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers")
@pytest.mark.weight(0.25)
def test_epoch_takes_a_step_for_each_batch(student):
    """Each batch takes a step along its own gradient, as if it were an epoch by itself."""
    start = student.build("build_model", 4).weights()
    one = student.tensor(3, 3, 32, 32), torch.tensor([0, 1, 2])
    other = student.tensor(3, 3, 32, 32), torch.tensor([3, 1, 0])
    together = trained_weights(student, start, one, other)
    in_turn = trained_weights(student, trained_weights(student, start, one), other)
    if not all(torch.allclose(together[name], in_turn[name], atol=2e-4) for name in together):
        raise Mismatch(
            "An epoch over two batches does not leave the weights that an epoch over the first batch and one "
            "over the second leave: gradients of different batches are added up, or a batch has no step.",
            hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
            look_for="zero_grad(), loop, backward()",
        )


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers")
@pytest.mark.weight(0.25)
def test_epoch_sets_the_modes(student):
    """Blocks in which nothing learns are in evaluation mode, and all others in training mode."""
    model = student.build("build_model", 4)
    blocks = model.get("blocks").thing("module")
    for number in range(DEPTH):
        fake = Fake.script([torch.zeros(3, 65, 96)], name=f"block{number}", parameters={"offset": (96,)})
        blocks.set(str(number), fake)
    for number in (0, 1):
        model.get(f"blocks.{number}").thing("module").call("requires_grad_", False)
    model.call("train")
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.01), Library("torch.nn.CrossEntropyLoss")
    loader = batches(student.tensor(6, 3, 32, 32), torch.tensor([0, 1, 2, 3, 0, 1]), [3, 3])
    outcome = student.call("train_one_epoch", model, loader, optimizer, criterion, CPU)
    modes = [{call.training for call in outcome.calls_of(f"block{number}")} for number in range(DEPTH)]
    if not all(modes):
        return
    for number in (2, 3):
        if modes[number] != {True}:
            raise Mismatch(
                f"With blocks 0 and 1 frozen, block {number} is in evaluation mode while it is trained.",
                hint="model.train() first; then block.eval() for the blocks in which nothing learns.",
                look_for="model.eval(), body",
            )
    for number in (0, 1):
        if modes[number] != {False}:
            raise Mismatch(
                f"With blocks 0 and 1 frozen, block {number} is in training mode.",
                hint="block.eval() for each block in which nothing learns, after model.train(), which sets "
                "all blocks.",
                look_for="block.train() | layer.train(), model.train()",
            )


def known_evaluation(student):
    """(images, outcome) of an evaluation of 6 images: 4 with the loss 1, and 2 that are taken for others."""

    def make():
        images = torch.from_numpy(numbered_images(6, student.next_seed(), (3, 16, 16)))
        scores = KNOWN_SCORES[None].repeat(6, 1)
        loader, criterion = batches(images, LABELS, [4, 2]), Library("torch.nn.CrossEntropyLoss")
        try:
            return images, student.call("evaluate", Fake.rows(scores), loader, criterion, CPU)
        except Mismatch as error:
            return error

    found = student.shared("known evaluation", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.25)
def test_evaluation_gives_four_values(student):
    """evaluate gives loss, accuracy, targets and predictions."""
    images = torch.from_numpy(numbered_images(6, student.next_seed(), (3, 16, 16)))
    loader = batches(images, torch.tensor([0, 1, 2, 0, 1, 2]), [4, 2])
    criterion = Library("torch.nn.CrossEntropyLoss")
    found = student.call("evaluate", Fake.rows(student.tensor(6, 3)), loader, criterion, CPU).returned
    loss, accuracy, targets, predictions = found.items(4, "values: loss, accuracy, targets, predictions")
    loss.number(0)
    require_share(accuracy)
    for name, each in (("targets", targets), ("predictions", predictions)):
        count = each.array(None, whole=True).size
        if count < 6:
            raise Mismatch(
                f"For 6 images in two batches evaluate gives {count} {name}.",
                hint="Collect those of every batch.",
                look_for="_[-1], return",
            )
        each.array(6, whole=True)


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values")
@pytest.mark.weight(0.25)
def test_evaluation_shows_the_images_as_they_are(student):
    """evaluate shows the model the loader's images as they are: nothing is mixed."""
    images, outcome = known_evaluation(student)
    seen = [call.args[0] for call in outcome.calls_of("model") if call.args]
    if sum(map(len, seen)) == len(images) and not torch.allclose(torch.cat(seen), images, atol=1e-5):
        raise Mismatch(
            "The images that the model is shown are not those that the loader gives.",
            hint="model(images), with images from the loader.",
            look_for="_ * images + _, model()",
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values", "evaluation_shows_the_images_as_they_are")
@pytest.mark.weight(0.25)
def test_evaluation_keeps_the_order(student):
    """targets are the labels of all images and predictions what the model says, in the loader's order."""
    _, outcome = known_evaluation(student)
    returned = outcome.returned.items(4)
    targets, predictions = (each.array(6, whole=True).tolist() for each in returned[2:])
    said = [0] * 6
    if (targets, predictions) == (said, LABELS.tolist()):
        raise Mismatch(
            "Targets and predictions are returned in each other's places.",
            hint="loss, accuracy, targets, predictions: the loader's labels before what the model says.",
            look_for="return",
        )
    if targets != LABELS.tolist():
        raise Mismatch(f"For the labels {LABELS.tolist()} the targets are {targets}.", look_for="return")
    if predictions != said:
        raise Mismatch(
            f"The largest score is that of class 0 for all six images; the predictions are {predictions}.",
            hint="logits.argmax(dim=1) for each batch.",
            look_for="argmax() | max()",
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values", "evaluation_shows_the_images_as_they_are")
@pytest.mark.weight(0.25)
def test_evaluation_averages_over_images(student):
    """Loss and accuracy are means over all images, also if the last batch is smaller."""
    _, outcome = known_evaluation(student)
    returned = outcome.returned.items(4)
    loss, accuracy = returned[0].number(), returned[1].number()
    if abs(accuracy - 4 / 6) > 1e-3:
        raise Mismatch(
            f"Of 6 images the model is right about 4, and the accuracy is {accuracy:.3f}.",
            hint="(predictions == targets), over all images: the share of those that are equal.",
            look_for="return",
        )
    if abs(loss - 2) > 0.01:
        clause, hint, look_for = why_wrong(loss)
        raise Mismatch(
            "4 images have the loss 1, and 2 images in another batch the loss 4: the mean over images is 2. "
            f"evaluate returns {loss:.2f}{f': {clause}' if clause else ''}.",
            hint=hint,
            look_for=look_for,
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values")
@pytest.mark.weight(0.25)
def test_evaluation_only_looks(student):
    """evaluate puts the model in evaluation mode, and computes no gradients."""
    _, outcome = known_evaluation(student)
    calls = outcome.calls_of("model")
    if any(call.training for call in calls):
        raise Mismatch(
            "The model is in training mode while it is measured: dropout would make its answers random.",
            hint="model.eval() first.",
            look_for="train(), body",
        )
    if any(call.gradients for call in calls):
        raise Mismatch(
            "Gradients are kept while the model is measured, which takes memory for nothing.",
            hint="with torch.no_grad(): around the loop over the batches.",
            look_for="enable_grad(), for",
        )
    if not outcome.gradients_after:
        raise Mismatch(
            "After evaluate, no gradients are computed any more: whatever trains next fails.",
            hint="with torch.no_grad(): around the loop over the batches ends by itself.",
            look_for="set_grad_enabled()",
        )
