"""The checks that students have: whether everything is there and has its shape."""

import numpy as np
import pytest
import torch

from grader.kit import Fake, Mismatch, batches, trainable_data


@pytest.mark.component("PatchEmbedding")
def test_patches_have_their_shape(student):
    """PatchEmbedding gives (batch, patches, dim)."""
    student.build("PatchEmbedding", 8, 4, 3, 6)(student.tensor(2, 3, 8, 8), shape=(2, 4, 6))


@pytest.mark.component("sinusoidal_positions")
def test_positions_begin_with_zero_and_one(student):
    """At position 0 all sines are 0 and all cosines 1."""
    found = student.call("sinusoidal_positions", 5, 8).returned.array(5, 8)
    if abs(found[0].sum() - 4) > 1e-5 or abs(found[0, 0]) > 1e-5:
        raise Mismatch("At position 0, the sines should be 0 and the cosines 1.")


@pytest.mark.component("MultiHeadSelfAttention")
def test_attention_has_its_shapes(student):
    """Tokens keep their shape; with return_weights=True there are weights for each head, too."""
    attention = student.build("MultiHeadSelfAttention", 12, 3)
    x = student.tensor(2, 5, 12)
    attention(x, shape=(2, 5, 12))
    both = attention.call("", x, return_weights=True, training=False).returned.items(2, "values")
    both[0].tensor(2, 5, 12)
    both[1].tensor(2, 3, 5, 5)


@pytest.mark.component("EncoderBlock")
def test_block_keeps_the_shape(student):
    """EncoderBlock gives tokens of its input's shape."""
    student.build("EncoderBlock", 12, 3)(student.tensor(2, 5, 12), shape=(2, 5, 12))


@pytest.mark.component("VisionTransformer")
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_model_gives_scores(student, pool):
    """An image becomes a score for every class, with either way of pooling and either kind of positions."""
    for positions in ("learned", "sinusoidal"):
        sizes = {"image_size": 8, "num_classes": 5, "dim": 12, "depth": 2, "heads": 3}
        model = student.build("VisionTransformer", **sizes, positions=positions, pool=pool)
        model(student.tensor(2, 3, 8, 8), shape=(2, 5))
        tokens = 5 if pool == "cls" else 4
        shown = model.call("attention", student.tensor(2, 3, 8, 8), training=False)
        shown.returned.tensor(2, 3, tokens, tokens)


# >>> ONLY full
@pytest.mark.component("attention_map")
def test_map_is_as_large_as_the_image(student):
    """attention_map gives a number for each pixel, 1 at most."""
    weights = torch.full((1, 2, 5, 5), 0.2)
    model = Fake.script(
        [0.0],
        parameters={"weight": (1,)},
        methods={"attention": Fake.script([weights])},
        like=("VisionTransformer", {"image_size": 8, "patch_size": 4, "dim": 8, "depth": 1, "heads": 2}),
    )
    found = student.call("attention_map", model, student.tensor(3, 8, 8)).returned.array(8, 8)
    if found.max() > 1 + 1e-6:
        raise Mismatch("The map's largest value should be 1.")


@pytest.mark.component("BasicBlock")
def test_residual_block_has_its_shape(student):
    """BasicBlock with more channels and stride=2 gives the shape that it should."""
    student.build("BasicBlock", 4, 6, 2)(student.tensor(2, 4, 8, 8), shape=(2, 6, 4, 4))


@pytest.mark.component("ResNet18")
def test_resnet_gives_scores(student):
    """An image becomes a score for every class."""
    student.build("ResNet18", 5, 4)(student.tensor(2, 3, 32, 32), shape=(2, 5))


# <<< ONLY


@pytest.mark.component("parameter_table")
def test_table_has_names_and_numbers(student):
    """parameter_table gives pairs of a name and a number."""
    made = student.build("VisionTransformer", image_size=8, num_classes=5, dim=12, depth=2, heads=3)
    for row in student.call("parameter_table", made).returned.items(None, "rows"):
        name, number = row.items(2, "values: a name and a number")
        name.text()
        number.whole_number(0)


@pytest.mark.component("warmup_cosine")
def test_schedule_is_a_share(student):
    """The factor lies between 0 and 1."""
    for step in (0, 5, 10, 15):
        student.call("warmup_cosine", step, 5, 15).returned.number(0, 1)


@pytest.mark.component("train_epoch")
def test_epoch_returns_two_numbers(student):
    """train_epoch returns the mean loss and the accuracy."""
    data = trainable_data(("a", "b"), (4, 2), features=3, seed=student.next_seed())
    run = student.run("train_epoch", data)
    if len(run.returned) != 2 or not 0 <= run.returned[1] <= 1:
        raise Mismatch("train_epoch should return two numbers: the mean loss, and the accuracy from 0 to 1.")


@pytest.mark.component("evaluate")
def test_evaluate_returns_a_dictionary(student):
    """evaluate returns loss, accuracy, targets, predictions and probabilities."""
    criterion = Fake.script([torch.tensor(0.5)], kind="function", name="criterion")
    loader = batches(torch.zeros(3, 3, 8, 8), torch.tensor([0, 1, 1]))
    model = Fake.script([torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])])
    returned = student.call("evaluate", model, loader, criterion, torch.device("cpu")).returned
    returned.at("loss").number(0)
    returned.at("accuracy").number(0, 1)
    for name in ("targets", "predictions"):
        returned.at(name).items(3, name)
    returned.at("probabilities").array(3, 2)


@pytest.mark.component("fit")
def test_fit_trains_each_epoch(student):
    """fit trains for as many epochs as it is asked to, and returns its history."""
    evaluation = {
        "loss": 0.5, "accuracy": 0.5, "targets": torch.tensor([0]),
        "predictions": torch.tensor([0]), "probabilities": torch.tensor([[1.0, 0.0]]),
    }  # fmt: skip
    fakes = {"train_epoch": Fake.script([(0.5, 0.5)]), "evaluate": Fake.script([evaluation])}
    model = student.keep(Fake.script([torch.zeros(2, 2)], parameters={"weight": (2, 2)}), "fit")
    loader = batches(torch.zeros(2, 3, 8, 8), torch.tensor([0, 1]), [1, 1])
    outcome = student.call(
        "fit", model, {"train": loader, "validation": loader}, 2, torch.device("cpu"), replace=fakes
    )
    calls = outcome.calls_of("train_epoch")
    if calls and len(calls) != 2:
        raise Mismatch(f"fit(..., epochs=2) trains {len(calls)} epochs.")


@pytest.mark.component("classification_metrics")
def test_metrics_are_there(student):
    """classification_metrics gives the confusion matrix and the measures of each class."""
    returned = student.call(
        "classification_metrics", np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    ).returned
    returned.at("confusion").items(2, "rows")
    for name in ("precision", "recall", "f1", "support", "roc_auc"):
        returned.at(name).items(2, "numbers, one for each class")


@pytest.mark.component("export_metrics")
def test_export_writes_a_file(student):
    """export_metrics writes a CSV."""
    outcome = student.call("export_metrics", {"vit": {"accuracy": 0.5}}, "metrics.csv", reads=["metrics.csv"])
    outcome.file("metrics.csv")


@pytest.mark.component("plot_confusion_matrix")
def test_confusion_matrix_draws(student):
    """plot_confusion_matrix draws a figure."""
    if not student.call(
        "plot_confusion_matrix", np.array([[3, 1], [0, 4]]), ["a", "b"], figures=True
    ).figures:
        raise Mismatch("plot_confusion_matrix draws nothing.")


@pytest.mark.component("plot_roc")
def test_roc_draws(student):
    """plot_roc draws a figure."""
    shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    if not student.call("plot_roc", np.array([0, 1, 1]), shares, ["a", "b"], figures=True).figures:
        raise Mismatch("plot_roc draws nothing.")
