"""The plots, read from the figures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from grader.kit import (
    Fake,
    Mismatch,
    bars,
    classes_named,
    classified_data,
    curves,
    figure_text,
    heat_maps,
    images_within,
    pictures,
    plotted,
    shares_not_shown,
)

NAMES = ("anvil", "bell", "crown", "drum")
MEAN, STD = (0.4, 0.5, 0.3), (0.25, 0.2, 0.3)
SHOWN = 4
ANIMALS = (
    "badger",
    "camel",
    "donkey",
    "ferret",
    "gibbon",
    "hamster",
    "iguana",
    "jackal",
)  # for the likeliest


# --- curves -----------------------------------------------------------------------------------------------


@pytest.mark.explains("curves_show_training_and_validation")
@pytest.mark.component("plot_learning_curves")
@pytest.mark.weight(3)
def test_learning_curves_are_the_history(student, reference):
    """The history of three epochs gives curves of three points each, of losses and of accuracies."""
    oracle, loaders = reference.oracle, reference.oracle.loaders(student)

    def fit(answers):
        fake = Fake.script([0.0], name="VisionTransformer", parameters={"weight": (2, 2)})
        model = student.keep(fake, "plot_learning_curves")
        fakes = {
            "train_epoch": Fake.script([(0.91, 0.31), (0.72, 0.52), (0.63, 0.63)]),
            "evaluate": Fake.script([oracle.evaluation(*each, 2) for each in answers]),
        }
        return student.call("fit", model, loaders, 3, torch.device("cpu"), replace=fakes)

    rows, training = [(0.84, 0.41), (0.75, 0.47), (0.77, 0.45)], [(0.54, 0.71), (0.53, 0.72), (0.52, 0.73)]
    fitted = student.attempted(lambda: oracle.fitted(student, fit, rows, training))
    if fitted is None:
        raise Mismatch("There is no history to draw: fit has to work first.")
    outcome = plotted(student, "plot_learning_curves", fitted.returned.plain)
    found = curves(outcome)
    for what, *ways in (
        ("training loss", (0.91, 0.72, 0.63), (0.54, 0.53, 0.52)),  # of train_epoch, or measured afterwards
        ("validation loss", (0.84, 0.75, 0.77)),
        ("validation accuracy", (0.41, 0.47, 0.45)),
    ):
        if not any(_draws(curve, values) for curve in found for values in ways):
            lines = [curve for curve in found if len(curve.y) == 3]
            if what != "training loss" and lines:
                raise reference.named("curves_without_validation")
            raise Mismatch(f"No curve shows the {what}, epoch by epoch.")
    if all(curve.x_label + curve.y_label + curve.title + curve.name == "" for curve in found):
        raise reference.named("curves_without_names")


def _draws(curve, values):
    """Whether a curve has these values, or the same in percent."""
    return any(
        len(curve.y) == len(values) and np.allclose(curve.y, factor * np.array(values), atol=1e-3 * factor)
        for factor in (1, 100)
    )


@pytest.mark.explains("roc_has_a_curve_for_each_class")
@pytest.mark.component("plot_roc")
@pytest.mark.weight(3)
def test_roc_curves_are_right(student, reference):
    """Each class has its ROC curve from (0, 0) to (1, 1), and its name."""
    shares = (1.5 * student.tensor(60, len(NAMES))).softmax(dim=1).numpy()
    targets = torch.randint(0, len(NAMES), (60,), generator=student.random).numpy()
    outcome = plotted(student, "plot_roc", targets, shares, list(NAMES))
    found = curves(outcome)
    for label, name in enumerate(NAMES):
        corners = reference.oracle.roc(targets, shares, label)
        fitting = [curve for curve in found if _same_curve(curve, corners)]
        if not fitting:
            if any(_same_curve(_with_its_beginning(curve), corners) for curve in found):
                raise reference.named("roc_begins_at_the_first_threshold")
            if any(_same_curve(curve, corners[:, ::-1]) for curve in found):
                raise reference.named("roc_axes_exchanged")
            predicted = np.eye(len(NAMES))[shares.argmax(axis=1)]
            if any(_same_curve(curve, reference.oracle.roc(targets, predicted, label)) for curve in found):
                raise reference.named("roc_of_predictions")
            if any(_leaves_out(curve, corners) for curve in found):
                raise reference.named("roc_at_few_thresholds")
            raise Mismatch(f"No curve is the ROC curve of {name!r} against all other classes.")
        written = "\n".join(curve.name for curve in fitting) or figure_text(outcome)
        if label not in classes_named(written, NAMES):
            raise reference.named("roc_without_names")


def _leaves_out(curve, corners):
    """Whether all points of a curve are corners, from (0, 0) to (1, 1), and fewer than there are."""
    points = np.stack([curve.x, curve.y], axis=1)
    points = points[np.isfinite(points).all(axis=1)]
    ends = {(0.0, 0.0), (1.0, 1.0)}
    if len(points) < 3 or not ends <= {tuple(np.round(each, 6)) for each in points}:
        return False
    distances = np.abs(points[:, None] - corners).max(axis=2)
    return bool((distances.min(axis=1) < 1e-6).all()) and len(np.unique(points, axis=0)) < len(corners) / 2


def _with_its_beginning(curve):
    """A curve with (0, 0) in front."""
    return replace(curve, x=np.concatenate([[0.0], curve.x]), y=np.concatenate([[0.0], curve.y]))


def _same_curve(curve, corners):
    """Whether a curve goes through the corners: what lies between them on a line may be left out or in."""
    points = np.stack([curve.x, curve.y], axis=1)
    if len(points) < 2 or not np.isfinite(points).all():
        return False
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    grid = np.linspace(0, 1, 41) + 1e-4
    if points[0].max() > 1e-6 or points[-1].min() < 1 - 1e-6:
        return False
    area = np.trapezoid if hasattr(np, "trapezoid") else np.trapz
    same_area = abs(area(points[:, 1], points[:, 0]) - area(corners[:, 1], corners[:, 0])) < 2e-3
    high = [corners[corners[:, 0] <= x + 1e-9, 1].max() for x in grid]
    own = [points[points[:, 0] <= x + 1e-9, 1].max(initial=0.0) for x in grid]
    return same_area and float(np.abs(np.array(high) - np.array(own)).mean()) < 0.03


# --- the confusion matrix ---------------------------------------------------------------------------------


@pytest.mark.explains("confusion_matrix_has_true_classes_as_rows")
@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(3)
def test_confusion_matrix_is_shown(student, reference):
    """The counts are shown with the true classes as rows, and both axes have the names."""
    matrix = torch.randint(1, 40, (len(NAMES), len(NAMES)), generator=student.random).numpy()
    outcome = plotted(student, "plot_confusion_matrix", matrix, list(NAMES))
    found = heat_maps(outcome, NAMES, whole=True)
    if not found:
        raise Mismatch("No figure shows a map of 4 x 4 counts.", hint="imshow, pcolormesh or a heat map.")
    shown = found[0]
    rows = matrix / matrix.sum(axis=1, keepdims=True)
    ways = ((matrix, 1e-2), (rows, 6e-3), (100 * rows, 0.51))  # in numbers as they are rounded in cells
    transposed = shown.row_role == "predicted" or shown.column_role == "true"
    names = np.ix_(shown.row_classes, shown.column_classes) if shown.is_named else ...

    def are_shown(turned, order=...):
        return any(
            np.allclose(values, (way.T if turned else way)[order], rtol=0, atol=rounded)
            for values in (shown.values, shown.counted)
            for way, rounded in ways
        )

    if not are_shown(transposed, names):
        if are_shown(transposed):
            raise reference.named("matrix_names_misplaced")
        if are_shown(not transposed) or are_shown(not transposed, names):
            raise reference.named("matrix_transposed")
        raise Mismatch("What the map shows is not the matrix.")
    if not shown.is_named:
        raise reference.named("matrix_without_names")
    for way, rounded in ways:
        placed = (way.T if transposed else way)[names]
        is_right, is_turned = (
            np.allclose(shown.written, each, rtol=0, atol=rounded) for each in (placed, placed.T)
        )
        if is_turned and not is_right:
            raise reference.named("matrix_written_transposed")


# --- images -----------------------------------------------------------------------------------------------


def images(student, names=NAMES):
    """Rigged images as they look, and the same normalized as students' loaders do."""
    data = classified_data(names, (SHOWN,), accuracy=0.5, seed=student.next_seed(), shape=(3, 16, 16))
    looks = torch.from_numpy(data.arrays["images"]) * 0.5 + 0.5
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return data, looks, (looks - mean) / std


@pytest.mark.explains("top3_names_the_likeliest_classes")
@pytest.mark.component("plot_top3")
@pytest.mark.weight(3)
def test_top3_are_the_likeliest(student, reference):
    """Each image is shown with its true class and the three likeliest classes, the likeliest first."""
    data, _, normalized = images(student, ANIMALS)
    shares = (2 * student.tensor(SHOWN, len(ANIMALS))).softmax(dim=1)
    labels = shares.argmin(dim=1)  # so that the true class is none of the three
    outcome = plotted(student, "plot_top3", normalized, labels, shares, list(ANIMALS), MEAN, STD)
    if images_within(outcome, data) < SHOWN:
        raise Mismatch(f"Of {SHOWN} images, {images_within(outcome, data)} are shown.")
    _, found = pictures(outcome, data)
    drawn = [(classes_named(bar.name, ANIMALS), bar.length) for bar in bars(outcome)]
    for picture in found:
        text = "\n".join(picture.captions)
        best = shares[picture.number].topk(3).indices.tolist()
        in_text = classes_named(text, ANIMALS)
        said = [*in_text, *classes_named("\n".join(picture.ticks), ANIMALS)]
        true = int(labels[picture.number])
        without = [label for label in in_text if label in best]  # bars show by their lengths
        if not set(best) <= set(said):
            if set(shares[picture.number].topk(3, largest=False).indices.tolist()) <= set(said):
                raise reference.named("top3_of_the_least")
            raise Mismatch(
                f"An image should be shown with {ANIMALS[best[0]]!r}, {ANIMALS[best[1]]!r} and "
                f"{ANIMALS[best[2]]!r}."
            )
        if true not in said:
            raise reference.named("top3_without_truth")
        other = next((label for label in in_text if label not in (*best, true)), None)
        if other is not None:
            raise Mismatch(
                f"An image is shown with {ANIMALS[other]!r}, which is neither its class nor one of the three "
                "likeliest."
            )
        orders = [dict.fromkeys(without), [*dict.fromkeys(without[::-1])][::-1]]  # the first times, the last
        if all(list(order) != [label for label in best if label in order] for order in orders):
            raise Mismatch("The three likeliest classes are not in the right order.")
        for label in set(best) - set(in_text):
            lengths = [length for named, length in drawn if named == [label]]
            share = float(shares[picture.number, label])
            scales = [share / length for length in lengths if length]
            if lengths and not any(abs(scale - unit) < 0.1 * unit for scale in scales for unit in (1, 0.01)):
                raise Mismatch(f"No bar of {ANIMALS[label]!r} is as long as its probability, {share:.3f}.")
    likeliest = [shares.softmax(dim=1), shares]  # by softmax once more, and as they are
    again, missing = (shares_not_shown(outcome, each.topk(3).values.ravel(), ANIMALS) for each in likeliest)
    if missing:
        if not again:
            raise reference.named("top3_softmax_of_probabilities")
        if len(missing) == 3 * SHOWN:
            raise reference.named("top3_without_probabilities")
        raise Mismatch(
            f"The probability {missing[0]:.3f} of one of the three likeliest classes is not shown."
        )


@pytest.mark.explains("top3_has_the_images_as_they_were")
@pytest.mark.component("plot_top3")
@pytest.mark.weight(1)
@pytest.mark.because("top3_are_the_likeliest")
def test_top3_shows_images_as_they_were(student, reference):
    """Images are shown as they were before they were normalized."""
    data, looks, normalized = images(student)
    shares = student.tensor(SHOWN, len(NAMES)).softmax(dim=1)
    outcome = plotted(
        student, "plot_top3", normalized, torch.from_numpy(data.labels), shares, list(NAMES), MEAN, STD
    )
    if restored(outcome, looks):
        return
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    if restored(outcome, (normalized * mean + std).clamp(0, 1)):
        raise reference.named("top3_mean_and_std_exchanged")
    raise reference.named("top3_not_restored")


def restored(outcome, looks):
    """Whether some image of a figure is one of these as it looks, from 0 to 1 or to 255."""
    wanted = looks.permute(0, 2, 3, 1).numpy()
    for value in outcome.arrays.values():
        if value.shape == wanted.shape[1:]:
            scaled = value / 255 if value.max() > 1.5 else value
            if any(np.abs(scaled - each).max() < 0.02 for each in wanted):
                return True
    return False


@pytest.mark.explains("attention_is_drawn_over_the_image")
@pytest.mark.component("plot_attention")
@pytest.mark.weight(3)
def test_attention_is_shown_with_the_image(student, reference):
    """For each image there are the image as it was, its attention map, and the map laid over the image."""
    data, looks, normalized = images(student)
    heat = torch.rand(16, 16, generator=student.random)
    outcome = _with_attention(student, normalized, data, heat)
    if not restored(outcome, looks):
        in_color = any(each.shape[:2] == (16, 16) and each.ndim == 3 for each in outcome.arrays.values())
        raise reference.named("attention_not_restored" if in_color else "attention_without_overlay")
    maps = [each for each in outcome.arrays.values() if each.shape == (16, 16) and _like(each, heat.numpy())]
    if not maps:
        # its own way to the map: what that should be is another part's affair, but it is one of this model
        own = _flat(outcome)
        if outcome.calls_of("attention_map") or not outcome.calls_of("attention") or not own:
            raise Mismatch("No figure shows the attention map.")
        again = _flat(_with_attention(student, normalized, data, heat))
        if len(again) == len(own) and all(np.allclose(*pair) for pair in zip(own, again, strict=True)):
            raise Mismatch("No figure shows the attention map: another attention gives the same figures.")
    asked = [
        torch.as_tensor(each).float().reshape(looks[0].shape)
        for call in outcome.calls_of("attention_map")
        for each in (*call.args, *call.kwargs.values())
        if getattr(each, "ndim", 0) and int(np.prod(each.shape)) == looks[0].numel()
    ]
    if any(torch.allclose(each, one, atol=1e-4) for each in asked for one in looks):
        raise reference.named("attention_of_restored_images")
    overlays = sum(_is_overlay(axes, outcome, looks) for figure in outcome.figures for axes in figure.axes)
    if not overlays and not _blended(outcome, looks):
        raise reference.named("attention_without_overlay")
    if not any(label in classes_named(figure_text(outcome), NAMES) for label in data.labels.tolist()):
        raise reference.named("attention_without_labels")


def _with_attention(student, normalized, data, heat):
    """What plot_attention draws of a model with an attention drawn anew, and this map in attention_map."""
    attention = (2 * student.tensor(1, 2, 17, 17)).softmax(dim=-1)
    fake = Fake.script(
        [0.0],
        parameters={"weight": (1,)},
        methods={"attention": Fake.script([attention])},
        like=("VisionTransformer", {"image_size": 16, "patch_size": 4, "dim": 8, "depth": 1, "heads": 2}),
    )
    model = student.keep(fake, "plot_attention")
    student.component(model).call("eval")
    labels = torch.from_numpy(data.labels)
    replaced = {"attention_map": Fake.script([heat])}
    return plotted(
        student, "plot_attention", model, normalized, labels, list(NAMES), MEAN, STD, replace=replaced
    )


def _flat(outcome):
    """The maps as large as the images, of one number for each pixel."""
    return [each for each in outcome.arrays.values() if each.shape == (16, 16)]


def _like(found, heat):
    """Whether a map is this one, scaled as one likes."""
    return bool(np.ptp(found) > 0) and abs(np.corrcoef(found.ravel(), heat.ravel())[0, 1]) > 0.999


def _is_overlay(axes, outcome, looks):
    """Whether an axes has both an image in color and a map."""
    colored = [outcome.arrays[f"image{number}"] for number in axes.images]
    meshes = [outcome.arrays[f"image{number}"] for number in axes.heat_maps]
    shapes = [each.ndim for each in colored]
    return 3 in shapes and (2 in shapes or any(mesh.size == looks[0, 0].numel() for mesh in meshes))


def _blended(outcome, looks):
    """Whether a picture is none of the images, and yet colored: image and map blended by hand."""
    wanted = looks.permute(0, 2, 3, 1).numpy()
    colored = [
        each for each in outcome.arrays.values() if each.shape[:2] == wanted.shape[1:3] and each.ndim == 3
    ]
    return any(all(np.abs(each[..., :3] - one).max() > 0.05 for one in wanted) for each in colored)
