"""Public checks of plots."""

from collections import Counter

import pytest

from grader.kit import Mismatch, quoted

MAPS = "heatmap() | imshow() | matshow() | pcolormesh() | ConfusionMatrixDisplay() | from_predictions()"
CAPTIONS = "set_title() | title() | set_xlabel() | xlabel() | text() | annotate()"


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(0.25)
def test_confusion_matrix_is_drawn(student, class_names):
    """plot_confusion_matrix draws a figure."""
    from grader.kit import drawn

    _, run = drawn(student, "plot_confusion_matrix", class_names)
    if not run.figures:
        raise Mismatch("No figure was drawn.", hint="Draw with matplotlib, seaborn or scikit-learn.")


def margins_fit(heat, rows, columns):
    """Whether a map's rows and columns add up to so many images, as counts or as shares."""
    import numpy as np

    values, n = np.asarray(heat.values, dtype=float), rows.sum()
    if heat.is_named:
        rows, columns = rows[list(heat.row_classes)], columns[list(heat.column_classes)]
    for whole in (n, 1.0, 100.0):
        near = 0.4 if whole == n else 0.006 * len(rows) * whole
        sums = values.sum(axis=1), values.sum(axis=0)
        if np.allclose(sums[0], rows * whole / n, atol=near) and np.allclose(
            sums[1], columns * whole / n, atol=near
        ):
            return True
    return False


def is_share(heat):
    """Whether a map shows shares of each row or of each column: their sums tell nothing of the counts."""
    import numpy as np

    values = np.asarray(heat.values, dtype=float)
    return any(
        np.allclose(values.sum(axis=axis), whole, atol=0.006 * len(values) * whole)
        for axis in (0, 1)
        for whole in (1, 100)
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("confusion_matrix_is_drawn", "confusion_matrix_asks_the_model")
@pytest.mark.weight(0.25)
def test_confusion_matrix_counts_every_image(student, class_names):
    """A row of the matrix has all images of a true class, a column all that were taken for a class."""
    import numpy as np

    from grader.kit import PREDICTED, TRUE, drawn, heat_maps

    data, run = drawn(student, "plot_confusion_matrix", class_names)
    classes = len(class_names)
    found = heat_maps(run, class_names, whole=True)
    if not found:
        raise Mismatch(
            f"There is no heat map of {classes} x {classes} cells.",
            hint="Use seaborn.heatmap, plt.imshow or sklearn's ConfusionMatrixDisplay.",
        )
    true, said = (np.bincount(each, minlength=classes) for each in (data.labels, data.predictions))
    for heat in found:
        turned = (heat.row_role, heat.column_role) in ((PREDICTED, TRUE), (PREDICTED, None), (None, TRUE))
        rows, columns = (said, true) if turned else (true, said)
        unsaid = heat.explained and heat.row_role is None and heat.column_role is None
        if (
            margins_fit(heat, rows, columns)
            or is_share(heat)
            or (unsaid and margins_fit(heat, columns, rows))
        ):
            return
        if sum(heat.numbers) == len(data.labels) and not np.array_equal(heat.values, np.round(heat.values)):
            return  # the colors stand for logarithms, and the numbers are written in
    heat = found[0]
    if margins_fit(heat, columns, rows):
        raise Mismatch(
            "The rows add up to how often each class was predicted, the columns to how often it is true: "
            "rows and columns are exchanged.",
            hint="confusion_matrix(true_labels, predicted_labels), or counts[true, predicted] += 1.",
            look_for="confusion_matrix() | from_predictions(), _[_, _] | _[_][_], bincount() | at()",
        )
    raise Mismatch(
        f"The rows of the matrix do not add up to the images of each class: all together it counts "
        f"{float(heat.values.sum()):.0f} of {len(data.labels)} images.",
        hint="Collect labels and predictions of all batches, then count every image once.",
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("confusion_matrix_is_drawn")
@pytest.mark.weight(0.25)
def test_confusion_matrix_names_the_classes(student, class_names):
    """The names of all classes are written on both axes of the confusion matrix."""
    from grader.kit import classes_named, drawn, heat_maps

    _, run = drawn(student, "plot_confusion_matrix", class_names)
    if any(heat.is_named for heat in heat_maps(run, class_names)):
        return
    for figure in run.figures:
        for axes in figure.axes:
            sides = [
                set(classes_named(" ".join(ticks), class_names)) for ticks in (axes.x_ticks, axes.y_ticks)
            ]
            bare = sum(len(side) < len(class_names) for side in sides)
            written = Counter(classes_named(" ".join(axes.texts), class_names))
            if all(written[label] >= bare for label in range(len(class_names))):
                return
    raise Mismatch(
        "The names of the classes are not on both axes.",
        hint="seaborn.heatmap(..., xticklabels=class_names, yticklabels=class_names).",
        look_for=MAPS,
        diagnosis="class_names_missing",
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(0.25)
def test_confusion_matrix_asks_the_model(student, class_names):
    """plot_confusion_matrix runs the model on the images, in evaluation mode."""
    require_asked(student, "plot_confusion_matrix", class_names)


def require_asked(student, function, class_names):
    """Check that a plotting function asks the model, with dropout off."""
    from grader.kit import drawn

    _, run = drawn(student, function, class_names)
    if not run.forwards:
        raise Mismatch(
            "The model is never called.",
            hint="model(images).argmax(dim=1) is what it predicts for each image.",
        )
    if any(forward.training for forward in run.forwards):
        raise Mismatch(
            "The model is run in training mode: dropout is on.",
            hint="model.eval() first.",
            look_for="train(), no_grad() | inference_mode(), for",
        )


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.weight(0.25)
def test_predictions_are_drawn(student, class_names):
    """plot_classwise_predictions shows 24 images, 4 per class."""
    from grader.kit import drawn, images_within, pictures

    data, run = drawn(student, "plot_classwise_predictions", class_names)
    shown, _ = pictures(run, data)
    if shown == 1:  # a grid of images in one, perhaps
        shown = max(images_within(run, data), 1)
    if not 4 * len(class_names) <= shown <= 4 * len(class_names) + 2:
        raise Mismatch(
            f"It shows {shown} images instead of {4 * len(class_names)}.",
            hint="" if shown else "imshow for each image that was collected; int(label) finds its class.",
            look_for="next()",
        )


def shown_pictures(student, class_names):
    """(data, how many images are shown, pictures) of plot_classwise_predictions.

    The pictures are those images that can be recognized.
    """
    from grader.kit import drawn, pictures

    data, run = drawn(student, "plot_classwise_predictions", class_names)
    shown, found = pictures(run, data)
    if not shown:
        raise Mismatch("No image is shown.", hint="imshow for every image, each in an axes of its own.")
    return data, shown, found


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.because("predictions_are_drawn")
@pytest.mark.weight(0.25)
def test_predictions_are_of_every_class(student, class_names):
    """plot_classwise_predictions shows four different images of each class."""
    data, shown, found = shown_pictures(student, class_names)
    numbers = [picture.number for picture in found]
    if len(numbers) < shown - 2:
        return  # they are resized, or a grid in one image: another check counts them
    by_class = [
        sorted(Counter(int(label) for label in labels[sorted(set(numbers))]).items())
        for labels in (data.labels, data.predictions)
    ]
    if [(label, 4) for label in range(len(class_names))] not in by_class:
        counts = ", ".join(f"{quoted(class_names[label])} ({count})" for label, count in by_class[0])
        raise Mismatch(
            f"The different images that are shown are of the classes {counts}; there should be 4 of each "
            "class.",
            hint="For every label: the first samples_per_class images whose true label it is.",
        )


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.because("predictions_are_drawn")
@pytest.mark.weight(0.25)
def test_predictions_are_captioned(student, class_names):
    """Each image carries its true and its predicted label, the right way round."""
    from grader.kit import PREDICTED, TRUE, classes_named, numbers_named, stated

    data, _, found = shown_pictures(student, class_names)
    for picture in found:
        true, said = int(data.labels[picture.number]), int(data.predictions[picture.number])
        text = "\n".join(picture.captions)
        classes = {*classes_named(text, class_names), *numbers_named(text, class_names)}
        if not {true, said} <= classes:
            raise Mismatch(
                f"An image of {class_names[true]} that the model takes for {class_names[said]} does not "
                "carry both names.",
                hint='ax.set_title(f"True: {...}, predicted: {...}") for every image.',
                look_for=CAPTIONS,
            )
        roles = [stated(caption, class_names) for caption in picture.captions]
        if true != said and any((r.get(TRUE), r.get(PREDICTED)) == (said, true) for r in roles):
            raise Mismatch(
                f"An image of {class_names[true]} that the model takes for {class_names[said]} is captioned "
                "the other way round.",
                hint="True labels are the loader's, predictions the model's: follow both to the title.",
                look_for=CAPTIONS,
                diagnosis="labels_exchanged",
            )


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.weight(0.25)
def test_predictions_ask_the_model(student, class_names):
    """plot_classwise_predictions runs the model on the images, in evaluation mode."""
    require_asked(student, "plot_classwise_predictions", class_names)
