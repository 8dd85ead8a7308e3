"""The checks that students have: whether everything is there and has its shape."""

import numpy as np
import pytest
import torch

from grader.kit import Fake, Library, Mismatch, batches, numbered_images

CPU = torch.device("cpu")


@pytest.mark.component("stratified_split")
def test_split_has_its_sizes(student):
    """Each part has as many images as were asked for."""
    parts = student.call("stratified_split", [0, 1] * 10, (6, 4), 3).returned.items(2, "index arrays")
    parts[0].array(12, whole=True)
    parts[1].array(8, whole=True)


def _gives_four(student, way):
    images, labels = student.tensor(4, 3, 8, 6), torch.tensor([0, 1, 2, 3])
    generator = Library("numpy.random.default_rng", 1)
    found = student.call(way, images, labels, 1.0, generator).returned.items(
        4, "values: images, two labels, lam"
    )
    found[0].tensor(4, 3, 8, 6)
    found[1].array(4, whole=True)
    found[2].array(4, whole=True)
    found[3].number(0, 1)


@pytest.mark.component("mixup")
def test_mixup_gives_four_values(student):
    """Mixed images, two rows of labels and a share are returned."""
    _gives_four(student, "mixup")


@pytest.mark.component("cutmix")
def test_cutmix_gives_four_values(student):
    """Mixed images, two rows of labels and a share are returned."""
    _gives_four(student, "cutmix")


@pytest.mark.component("mixed_loss")
def test_mixed_loss_is_a_number(student):
    """mixed_loss gives a number, with gradients."""
    criterion = student.keep(Library("torch.nn.CrossEntropyLoss"))
    labels = torch.tensor([0, 1, 2])
    outcome = student.call(
        "mixed_loss", criterion, student.tensor(3, 4), labels, labels.flip(0), 0.3, gradients=True
    )
    outcome.returned.number()
    if not outcome.attached:
        raise Mismatch("What mixed_loss returns has no gradients.", hint="No .item(), no .detach().")


@pytest.mark.component("freeze_backbone")
def test_freezing_leaves_the_head(student):
    """After freeze_backbone the head learns, and the blocks do not."""
    model = student.build("build_model", 4)
    student.call("freeze_backbone", model)
    learns = {each.name for each in student.component(model).parameters if each.trainable}
    if "head.weight" not in learns or any(name.startswith("blocks.") for name in learns):
        raise Mismatch("After freeze_backbone, exactly the head should learn.")


@pytest.mark.component("unfreeze")
def test_unfreezing_reaches_everything(student):
    """After unfreeze(model) everything learns."""
    model = student.build("build_model", 4)
    student.call("unfreeze", model)
    if not all(each.trainable for each in student.component(model).parameters):
        raise Mismatch("After unfreeze(model), everything should learn.")


@pytest.mark.component("train_one_epoch")
def test_epoch_gives_two_numbers(student):
    """train_one_epoch gives a loss and an accuracy, and the model learns."""
    model = student.build("build_model", 4)
    before = model.weights()
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.1), Library("torch.nn.CrossEntropyLoss")
    loader = batches(student.tensor(6, 3, 32, 32), torch.tensor([0, 1, 2, 3, 0, 1]), [4, 2])
    found = student.call("train_one_epoch", model, loader, optimizer, criterion, CPU).returned.items(2)
    found[0].number(0)
    found[1].number(0, 1)
    if torch.equal(before["head.weight"], model.weights()["head.weight"]):
        raise Mismatch("After train_one_epoch, the model's weights are what they were.")


@pytest.mark.component("evaluate")
def test_evaluation_gives_four_values(student):
    """evaluate gives loss, accuracy, targets and predictions."""
    images = torch.from_numpy(numbered_images(6, student.next_seed(), (3, 16, 16)))
    loader = batches(images, torch.tensor([0, 1, 2, 0, 1, 2]), [4, 2])
    criterion = Library("torch.nn.CrossEntropyLoss")
    found = student.call("evaluate", Fake.rows(student.tensor(6, 3)), loader, criterion, CPU).returned
    loss, accuracy, targets, predictions = found.items(4, "values: loss, accuracy, targets, predictions")
    loss.number(0)
    accuracy.number(0, 1)
    targets.array(6, whole=True)
    predictions.array(6, whole=True)


@pytest.mark.component("EarlyStopping")
def test_stopping_stops(student):
    """After `patience` steps without an improvement, step gives True."""
    stopping = student.make("EarlyStopping", 2)
    model = student.keep(Fake.script([0.0], parameters={"weight": (2,)}))
    said = [stopping.call("step", value, model).returned.truth() for value in (0.5, 0.4, 0.3)]
    if said != [False, False, True]:
        raise Mismatch(f"With patience 2 and the values 0.5, 0.4, 0.3, step gives {said}.")


@pytest.mark.component("fit")
def test_fit_goes_through_both_stages(student):
    """fit calls train_one_epoch once for each epoch, and returns a history."""
    model = student.build("build_model", 4)
    fakes = {
        "train_one_epoch": Fake.script([(1.0, 0.5)], marks=True),
        "evaluate": Fake.script(
            [(1.0, value, torch.tensor([0]), torch.tensor([0])) for value in (0.3, 0.4, 0.5)]
        ),
    }
    loaders = {
        part: batches(torch.zeros(1, 3, 32, 32), torch.tensor([0])) for part in ("train", "validation")
    }
    outcome = student.call("fit", model, loaders, (1, 2), CPU, replace=fakes)
    if len(outcome.calls_of("train_one_epoch")) != 3:
        raise Mismatch(
            f"fit(..., epochs=(1, 2)) calls train_one_epoch {len(outcome.calls_of('train_one_epoch'))} times."
        )


@pytest.mark.component("per_class_accuracy")
def test_each_class_has_an_accuracy(student):
    """per_class_accuracy gives a number for each class."""
    student.call("per_class_accuracy", [0, 1, 1], [0, 1, 0], 2).returned.array(2)


def _drawn(student, name, *args):
    if not student.call(name, *args, figures=True).figures:
        raise Mismatch(f"{name} draws nothing, or its figure cannot be found.", hint="Leave it open.")


@pytest.mark.component("show_patches")
def test_patches_are_drawn(student):
    """show_patches draws a figure."""
    _drawn(student, "show_patches", student.tensor(3, 16, 16), 8, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))


@pytest.mark.component("show_attention")
def test_attention_is_drawn(student):
    """show_attention draws a figure."""
    model = student.build("build_model", 4)
    _drawn(student, "show_attention", model, student.tensor(3, 32, 32), (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))


@pytest.mark.component("plot_history")
def test_history_is_drawn(student):
    """plot_history draws what fit returns."""
    model = student.build("build_model", 4)
    fakes = {
        "train_one_epoch": Fake.script([(1.0, 0.5)]),
        "evaluate": Fake.script([(1.0, 0.5, torch.tensor([0]), torch.tensor([0]))]),
    }
    loaders = {
        part: batches(torch.zeros(1, 3, 32, 32), torch.tensor([0])) for part in ("train", "validation")
    }
    history = student.call("fit", model, loaders, (1, 1), CPU, replace=fakes).returned
    _drawn(student, "plot_history", history.plain)


@pytest.mark.component("plot_per_class")
def test_classes_are_drawn(student):
    """plot_per_class draws a figure."""
    _drawn(student, "plot_per_class", ["cat", "dog", "cow"], np.array([0.5, 0.7, 0.2]))


@pytest.mark.component("plot_confusion_matrix")
def test_matrix_is_drawn(student):
    """plot_confusion_matrix draws a figure."""
    _drawn(student, "plot_confusion_matrix", np.array([[3, 1], [0, 4]]), ["cat", "dog"])
