"""The figures, read as structure and compared with the rigged truth."""

import math
import re

import numpy as np
import pytest

from grader.kit import (
    ACCURACY,
    PREDICTED,
    TRUE,
    Mismatch,
    Undecided,
    classes_named,
    classified_data,
    drawn,
    heat_maps,
    images_within,
    numbers_named,
    pictures,
    stated,
)

MOST_MAPS = (
    4  # counts, and shares of rows, of columns and of all: a hundred guesses are not a confusion matrix
)
EXTRA_IMAGES = 2  # beside the examples, such as the strip of colors of a legend
EXPONENT = re.compile(r"\de\+\d")  # of a number as Python writes it by default
MOST_CHANCE = 0.01  # that captions are right by luck
# what a title must say before a normalization is measured by it
SHARE_OF_TRUE = ("recall", "each true", "per true", "each actual", "per actual")
SHARE_OF_PREDICTED = ("precision", "each predicted", "per predicted")


def confusion_of(true, predicted, classes):
    """Counts, (true classes, predicted classes)."""
    counts = np.zeros((classes, classes))
    np.add.at(counts, (np.asarray(true), np.asarray(predicted)), 1)
    return counts


def forms(counts):
    """The matrix as counts, and as shares of rows, of columns, and of all."""
    rows, columns = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    return {
        "counts": counts,
        "rows": counts / np.maximum(rows, 1),
        "columns": counts / np.maximum(columns, 1),
        "all": counts / max(counts.sum(), 1),
    }


def same(values, form):
    """Whether values are the same, as such or in percent, perhaps rounded."""
    return any(np.allclose(values, times * form, atol=0.0051 * times, rtol=0) for times in (1, 100))


def by_names(heat, counts):
    """The counts, with rows and columns in the order in which the tick labels name them."""
    return counts[np.ix_(heat.row_classes, heat.column_classes)]


def orders_of(heat, counts):
    """The counts in the order of the map's names, if it has them, and in that of the classes."""
    return [by_names(heat, counts), counts] if heat.is_named else [counts]


def form_of(heat, counts):
    """In which form the map shows the counts, in the order of its names or of the classes; None if not."""
    for placed in orders_of(heat, counts):
        for name, form in forms(placed).items():
            if same(heat.values, form):
                return name
        # colors may stand for logarithms or roots, when the numbers themselves are written in
        written = np.sort(heat.numbers)
        if len(written) == placed.size and np.array_equal(written, np.sort(placed.ravel())):
            _, ranks = np.unique(placed, return_inverse=True)
            _, shown = np.unique(np.round(heat.values, 9), return_inverse=True)
            if np.array_equal(ranks.ravel(), shown.ravel()):
                return "counts"
    return None


def are_written_transposed(heat, counts):
    """Whether the counts are written into the cells with rows and columns exchanged, unlike the colors."""
    orders = orders_of(heat, counts)
    placed = next((each for each in orders for form in forms(each).values() if same(heat.values, form)), None)
    return (
        placed is not None
        and np.array_equal(heat.written, placed.T)
        and not np.array_equal(heat.written, placed)
    )


def are_written_otherwise(heat, counts):
    """Whether every cell has a number, and most of them are those of no form of the counts."""
    if np.isnan(heat.written).any():
        return False
    right = [
        np.abs(heat.written - times * form) <= 0.0051 * times + 0.06 * times * form
        for placed in orders_of(heat, counts)
        for form in forms(placed).values()
        for times in (1, 100)
    ]
    return max(cells.mean() for cells in right) < 0.5


def rows_are_predicted(heat):
    """Whether the axes say that the rows show predicted classes."""
    return (heat.row_role, heat.column_role) in ((PREDICTED, TRUE), (PREDICTED, None), (None, TRUE))


def misannounced(heat, form):
    """Whether the title says that the shares are of the other axis."""
    title = heat.title.lower()
    of_true = any(words in title for words in SHARE_OF_TRUE)
    of_predicted = any(words in title for words in SHARE_OF_PREDICTED)
    if form not in ("rows", "columns") or of_true == of_predicted:
        return False
    return of_true == ((form == "rows") == rows_are_predicted(heat))


def divided_across(counts):
    """Shares by the sums of the wrong class: entry (i, j) by row j's sum, or by column i's."""
    return (
        counts / np.maximum(counts.sum(axis=1)[None, :], 1),
        counts / np.maximum(counts.sum(axis=0)[:, None], 1),
    )


def over_the_batch(data, classes):
    """The matrix when argmax runs over the batch: (classes,) answers per batch."""
    true, predicted, start = [], [], 0
    for size in data.batch_sizes:
        answers = data.table[start : start + size].argmax(axis=0).clip(max=classes - 1)
        true += data.labels[start : start + size][: len(answers)].tolist()
        predicted += answers[:size].tolist()
        start += size
    return confusion_of(true, predicted, classes)


def after_softmax_over_batch(data, classes):
    """The matrix when a softmax over the images of each batch comes before the argmax over the classes."""
    start, predicted = 0, []
    for size in data.batch_sizes:
        scores = data.table[start : start + size]
        powers = np.exp(scores - scores.max(axis=0))
        predicted += (powers / powers.sum(axis=0)).argmax(axis=1).clip(max=classes - 1).tolist()
        start += size
    return confusion_of(data.labels, predicted, classes)


def known_confusions(data, classes):
    """The matrices of known mistakes: id -> counts."""
    first, last = data.batch_sizes[0], -data.batch_sizes[-1]
    labels, said = data.labels, data.predictions
    return {
        "confusion_of_first_batch": confusion_of(labels[:first], said[:first], classes),
        "confusion_of_last_batch": confusion_of(labels[last:], said[last:], classes),
        "compared_with_itself": confusion_of(labels, labels, classes),
        "argmax_over_batch": over_the_batch(data, classes),
        "confusion_after_softmax_over_batch": after_softmax_over_batch(data, classes),
    }


def fault_of(heat, data, reference):
    """What is wrong with a heat map of all classes; None when it is right.

    Raises:
        Undecided: Rows and columns are exchanged, and what the axes say is not understood.
    """
    classes = len(heat.values)
    counts = confusion_of(data.labels, data.predictions, classes)
    expected = counts.T if rows_are_predicted(heat) else counts
    form = form_of(heat, expected)
    if form is not None:
        if are_written_transposed(heat, expected):
            return reference.named("counts_written_transposed")
        if are_written_otherwise(heat, expected):
            return Mismatch(
                "The numbers that are written into the cells are not those that the colors show.",
                hint="Write what is drawn: annot=True, or ax.text(column, row, matrix[row, column]).",
                look_for="annotate() | text() | heatmap()",
            )
        return reference.named("confusion_normalized_wrongly") if misannounced(heat, form) else None
    if form_of(heat, expected.T):
        if heat.explained and heat.row_role is None and heat.column_role is None:
            raise Undecided("the rows show the predicted classes; do the labels of the axes say so?")
        return reference.named("confusion_transposed")
    if any(same(heat.values, shares) for side in (counts, counts.T) for shares in divided_across(side)):
        return reference.named("confusion_normalized_wrongly")
    if form_of(heat, confusion_of(data.predictions, data.predictions, classes)):
        return reference.named("compared_with_itself")
    for id_, known in known_confusions(data, classes).items():
        if form_of(heat, known) or form_of(heat, known.T):
            return reference.named(id_)
    total = heat.values.sum()
    if np.array_equal(heat.values, heat.values.round()) and total != counts.sum():
        return Mismatch(
            f"The heat map counts {total:.0f} images; the loader has {counts.sum():.0f}.",
            hint="Collect labels and predictions of all batches, then count every image once.",
        )
    return Mismatch(
        "The heat map does not show the confusion matrix of the model's predictions.",
        hint="Entry (i, j) is how many images of class i the model takes for class j.",
    )


def is_part(heat, data):
    """Whether a map shows the matrix where it shows anything: the errors alone, without the diagonal."""
    counts = confusion_of(data.labels, data.predictions, len(heat.values))
    shown = heat.values != 0
    return bool(shown.any()) and any(
        np.allclose(heat.values[shown], times * form[shown], atol=0.0051 * times, rtol=0)
        for form in forms(counts.T if rows_are_predicted(heat) else counts).values()
        for times in (1, 100)
    )


@pytest.mark.shows("confusion_matrix_is_drawn", "confusion_matrix_counts_every_image")
@pytest.mark.explains("confusion_matrix_names_the_classes", "confusion_matrix_asks_the_model")
@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(3)
def test_confusion_matrix_is_right(student, reference, class_names):
    """The heat map shows how often each true class was predicted as each class, over all images."""
    data, run = drawn(student, "plot_confusion_matrix", class_names)
    if not run.figures:
        raise reference.named("confusion_not_drawn")
    if not run.forwards:
        raise reference.named("model_not_asked")
    classes = len(class_names)
    found = heat_maps(run, class_names)
    whole = [heat for heat in found if len(heat.values) == classes]
    if not whole:
        for heat in found:  # a batch in which not every class occurs makes a smaller matrix
            for place, id_ in ((0, "confusion_of_first_batch"), (-1, "confusion_of_last_batch")):
                if heat.values.sum() == data.batch_sizes[place]:
                    raise reference.named(id_)
        raise Mismatch(
            f"There is no heat map of {classes} x {classes} cells.",
            hint="Use seaborn.heatmap, plt.imshow or sklearn's ConfusionMatrixDisplay.",
        )
    faults = [fault_of(heat, data, reference) for heat in whole[:MOST_MAPS]]
    if None not in faults:
        raise next((fault for fault in faults if fault.diagnosis), faults[0])
    wrong = [h for h, fault in zip(whole, faults, strict=False) if fault is not None and not is_part(h, data)]
    if wrong or len(whole) > MOST_MAPS:
        student.policy("several_answers", "Besides the right confusion matrix, wrong ones are drawn.")
    elif is_added_up(student, class_names):
        raise reference.named("confusion_kept_between_calls")
    else:
        advise_on_lopsided_data(student, class_names)


def drawn_again(student, class_names):
    """(data, run) of a second confusion matrix; the run is None where it failed.

    One class is absent, another is right over a hundred times, each pass gives the images in another order,
    the names come the other way round, and the model is in training mode.
    """

    def make():
        names = tuple(reversed(class_names))
        draws = np.random.default_rng(student.next_seed())
        absent = int(draws.integers(len(names)))
        frequent = (absent + 1) % len(names)
        data = classified_data(names, (80, 80), accuracy=ACCURACY, seed=student.next_seed())
        data.labels[data.labels == absent] = frequent
        data.labels[:120] = frequent
        data.table[:120, frequent] = data.table.max() + 10
        data.table[:, absent] = data.table.min() - 10
        try:
            run = student.run("plot_confusion_matrix", data, initial_mode="train", shuffled=True)
        except Mismatch:
            run = None
        return data, run

    return student.shared("plot_confusion_matrix again", make)


def whole_maps(run, class_names):
    """The heat maps of all classes; none of a run that failed."""
    return heat_maps(run, class_names, whole=True) if run is not None else []


def is_added_up(student, class_names):
    """Whether the second confusion matrix still counts the images of the first."""
    first, _ = drawn(student, "plot_confusion_matrix", class_names)
    again, run = drawn_again(student, class_names)
    both = sum(confusion_of(data.labels, data.predictions, len(class_names)) for data in (first, again))
    return any(same(heat.values, side) for heat in whole_maps(run, class_names) for side in (both, both.T))


def advise_on_lopsided_data(student, class_names):
    """Say what the second drawing shows, and what the first one leaves out."""
    data, run = drawn_again(student, class_names)
    whole = whole_maps(run, class_names)
    if not whole:
        student.policy(
            "row_of_absent_class_missing",
            "A class that is neither among the labels nor among the predictions gets no row and no column: "
            "then the names no longer fit the counts.",
            "Count with labels=range(len(class_names)).",
            look_for="confusion_matrix() | from_predictions() | bincount() | heatmap()",
        )
    elif all(is_of_several_passes(heat, data) for heat in whole):
        student.policy(
            "labels_of_another_pass",
            "Labels and predictions come from different passes over the loader: if it shuffles, they do not "
            "belong together.",
            "Collect both in the same loop over the batches.",
            look_for="confusion_matrix() | from_predictions()",
        )
    elif not any(heat.numbers for heat in whole):
        student.policy(
            "counts_not_written",
            "The matrix has colors and no numbers; the template asks for the counts written in.",
            "seaborn.heatmap(..., annot=True), or ax.text(column, row, count) for every cell.",
            look_for="heatmap() | imshow() | matshow() | pcolormesh()",
        )
    elif not any(shows_counts(heat, data) for heat in whole):
        student.policy(
            "shares_in_place_of_counts",
            "The matrix shows shares; the template asks for the counts. A share does not say of how many.",
            "Leave normalize out, or write the counts beside the shares.",
            look_for="normalize | confusion_matrix(), heatmap()",
        )
    elif any(EXPONENT.search(text) for figure in run.figures for axes in figure.axes for text in axes.texts):
        student.policy(
            "counts_in_exponents",
            "Counts of a hundred and more are written like 1.2e+02.",
            'seaborn.heatmap(..., annot=True, fmt="d") writes them in full.',
            look_for="heatmap() | plot()",
        )


def shows_counts(heat, data):
    """Whether a map's cells, or the numbers in them, are the counts, rounded as they may be."""
    counts = confusion_of(data.labels, data.predictions, len(heat.values))
    if np.isin(np.unique(counts[counts < 100]), heat.numbers).all():
        return True
    return any(np.array_equal(heat.values, side) for side in (counts, counts.T))


def is_of_several_passes(heat, data):
    """Whether a map has the right sums, and yet is not the matrix of labels and predictions of one pass."""
    classes = len(heat.values)
    counts = confusion_of(data.labels, data.predictions, classes)
    shown = heat.values.T if rows_are_predicted(heat) else heat.values
    right_sums = all(same(shown.sum(axis=axis), counts.sum(axis=axis)) for axis in (0, 1))
    return right_sums and not same(shown, counts)


def shows_any(heat, matrices):
    """Whether a heat map shows one of the matrices, in whatever form and whichever way round."""
    return any(
        same(heat.values, form) for m in matrices for side in (m, m.T) for form in forms(side).values()
    )


def names_fit(heat, counts):
    """Whether the names stand beside the rows and columns that they belong to."""
    if shows_any(heat, [by_names(heat, counts), by_names(heat, counts.T).T]):
        return True
    # of a matrix that is wrong in itself one cannot say where the names belong
    return heat.row_classes == heat.column_classes and not shows_any(heat, [counts])


def names_somewhere(axes, class_names):
    """Whether all names stand on both sides of an axes: `by ticks`, partly `by text`, or not: empty."""
    sides = [set(classes_named(" ".join(ticks), class_names)) for ticks in (axes.x_ticks, axes.y_ticks)]
    bare = sum(len(side) < len(class_names) for side in sides)
    written = classes_named(" ".join(axes.texts), class_names)
    by_text = bare and all(written.count(label) >= bare for label in range(len(class_names)))
    return "by text" if by_text else "by ticks" if not bare else ""


def require_names_that_follow(student, reference, class_names):
    """Fail names which stand on the axes in the same order when class_names comes in another."""
    data, run = drawn_again(student, class_names)
    counts = confusion_of(data.labels, data.predictions, len(class_names))
    placed = {
        order: any(names_fit(heat, counts) for heat in whole_maps(run, names) if heat.is_named)
        for order, names in (("given", data.class_names), ("usual", class_names))
    }
    if placed["usual"] and not placed["given"]:
        raise reference.named("class_names_in_fixed_order")


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(1)
@pytest.mark.shows("confusion_matrix_names_the_classes", "confusion_matrix_counts_every_image")
def test_confusion_matrix_is_labeled(student, reference, class_names):
    """The confusion matrix carries the class names on both axes, each beside its own row and column."""
    data, run = drawn(student, "plot_confusion_matrix", class_names)
    if not run.figures:
        raise reference.named("confusion_not_drawn")
    if not run.forwards:
        raise reference.named("model_not_asked")
    counts = confusion_of(data.labels, data.predictions, len(class_names))
    whole = heat_maps(run, class_names, whole=True)
    named = [heat for heat in whole if heat.is_named]
    if any(names_fit(heat, counts) for heat in named):
        require_names_that_follow(student, reference, class_names)
        return
    places = {names_somewhere(axes, class_names) for figure in run.figures for axes in figure.axes}
    if "by text" in places or ("by ticks" in places and not whole):
        return  # where texts belong, and what smaller maps show, cannot be told
    raise reference.named("class_names_misplaced" if "by ticks" in places else "class_names_missing")


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(1)
@pytest.mark.shows("confusion_matrix_asks_the_model")
def test_confusion_matrix_leaves_dropout_off(student, reference, class_names):
    """plot_confusion_matrix runs the model in evaluation mode."""
    _, run = drawn(student, "plot_confusion_matrix", class_names)
    if not run.forwards:
        raise reference.named("model_not_asked" if run.figures else "confusion_not_drawn")
    if any(forward.training for forward in run.forwards):
        raise reference.named("confusion_in_training_mode")
    advise_on_mode(student, "plot_confusion_matrix", drawn_again(student, class_names)[1])


def advise_on_mode(student, function, run):
    """Say that a function leaves a model that is in training mode in it."""
    if run is not None and any(forward.training for forward in run.forwards):
        student.policy(
            "drawn_in_the_mode_it_is_in",
            f"{function} leaves the model in the mode in which it comes: after train_epoch dropout would act "
            "and change the predictions.",
            "model.eval() at its beginning.",
        )


def shown_images(student, reference, class_names):
    """(data, pictures) of plot_classwise_predictions.

    Raises:
        Mismatch: No image of the loader is shown, or the model is never asked about one.
        Undecided: Some are shown, but in a form in which they cannot be told apart.
    """
    data, run = drawn(student, "plot_classwise_predictions", class_names)
    if not run.figures:
        raise reference.named("examples_not_drawn")
    shown, found = pictures(run, data)
    if not shown and not any(axes.images or axes.heat_maps for figure in run.figures for axes in figure.axes):
        raise reference.named("examples_axes_empty")
    if not shown:
        raise Mismatch("No image is shown.", hint="Show the images of the loader with imshow, one per axes.")
    if not run.forwards:
        raise Mismatch("The model is never called.", hint="model(images).argmax(dim=1) is what it predicts.")
    if not found and not images_within(run, data):
        raise Mismatch(
            "The images that are shown are not the loader's.",
            hint="Show images[i] as the loader gives them, one per axes.",
            diagnosis="other_images_shown",
        )
    if not found:
        raise Undecided("the shown images cannot be compared with the loader's: resized, or a grid in one")
    return data, found


@pytest.mark.shows("predictions_are_of_every_class")
@pytest.mark.explains("predictions_are_drawn")
@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.weight(2)
def test_predictions_show_four_of_each_class(student, reference, class_names):
    """Four different images of every class are shown, chosen by their true or by their predicted class."""
    data, found = shown_images(student, reference, class_names)
    shown = [picture.number for picture in found]
    if len(set(shown)) != len(shown):
        raise reference.named("image_shown_twice")
    by_class = [
        [int((classes[shown] == label).sum()) for label in range(len(class_names))]
        for classes in (data.labels, data.predictions)
    ]
    if [4] * len(class_names) in by_class:
        if by_class[0] != by_class[1] and by_class[0] != [4] * len(class_names):
            student.policy(
                "examples_by_prediction",
                "Four images of each predicted class are shown; the template asks for four of each true one.",
                "Choose the images by their labels.",
                look_for="pred == _ | preds == _ | predicted == _ | predictions == _ | y_pred == _ | p == _",
            )
        elif any(picture.is_transposed for picture in found):
            student.policy(
                "images_transposed",
                "Some images are shown with rows and columns exchanged.",
                "From (channels, height, width), permute(1, 2, 0) makes what imshow expects.",
                look_for="permute() | transpose() | swapaxes() | imshow()",
            )
        return
    known = reference.named("not_four_per_class")
    alike = len(set(by_class[0])) == 1
    counts = f"{len(shown)} are shown, {by_class[0][0]} of each." if alike else f"{len(shown)} are shown."
    raise Mismatch(f"{known.message} {counts}", hint=known.hint, diagnosis=known.diagnosis)


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.because("predictions_show_four_of_each_class")
@pytest.mark.weight(0.5)
def test_predictions_are_as_many_as_asked_for(student, reference, class_names):
    """plot_classwise_predictions draws as many images of each class as samples_per_class says."""
    data, run = two_of_each(student, class_names)
    shown, _ = pictures(run, data)
    if shown == 1:  # a grid of images in one, perhaps
        shown = max(images_within(run, data), 1)
    if 0 <= shown - 2 * len(class_names) <= EXTRA_IMAGES:
        return
    if 0 <= shown - 4 * len(class_names) <= EXTRA_IMAGES:
        raise reference.named("samples_per_class_ignored")
    if shown == 1:
        raise Undecided("how many images there are in the one that is shown cannot be told")
    if shown == 0:
        raise Mismatch(
            "When it is called again, plot_classwise_predictions shows no image.",
            hint="Count the images of each class in variables of the function, from 0 in each call.",
            diagnosis="examples_of_first_call_only",
        )
    raise Mismatch(
        f"With samples_per_class=2 it shows {shown} images of {len(class_names)} classes.",
        hint="Take samples_per_class images of each class, from all batches.",
        diagnosis="not_as_many_as_asked_for",
    )


def two_of_each(student, class_names):
    """(data, run) of a second call: two images of each class, other names, and a model in training mode.

    Raises:
        Mismatch: The function raised.
    """

    def make():
        names = tuple(reversed(class_names))
        data = classified_data(names, (32, 32, 32), accuracy=ACCURACY, seed=student.next_seed())
        keywords = {"samples_per_class": 2}
        try:
            return data, student.run(
                "plot_classwise_predictions", data, initial_mode="train", keywords=keywords
            )
        except Mismatch as why:
            return data, why

    again, drawing = student.shared("plot_classwise_predictions again", make)
    if isinstance(drawing, Mismatch):
        raise drawing.again()
    return again, drawing


def stated_classes(picture, class_names):
    """The classes that a picture's captions name; where one name or none does, also by their numbers.

    Returns:
        An empty set when they name so many that they say nothing.
    """
    text = "\n".join(picture.captions)
    names, numbers = (set(of(text, class_names)) for of in (classes_named, numbers_named))
    if len(names) > 2 or (len(names) < 2 and len(numbers) > 4 - len(names)):
        return set()
    return names if len(names) == 2 else names | numbers


def tells_only(picture, label, other, class_names):
    """Whether a picture's captions name one class alone, and the other not at all."""
    names = set(classes_named("\n".join(picture.captions), class_names))
    stated = stated_classes(picture, class_names)
    return (names or stated) == {label} and other not in stated


def statements(picture, class_names):
    """What a picture's captions say outright: `true` and `predicted` -> class."""
    said = {}
    for caption in picture.captions:
        for role, label in stated(caption, class_names).items():
            said.setdefault(role, set()).add(label)
    return {role: labels.pop() for role, labels in said.items() if len(labels) == 1}


def chance_of(picture, right, stated, class_names):
    """The probability that captions which were made without the model name both classes of a picture.

    Whoever makes them knows the true class; the model's answer is that in ACCURACY of all cases, and in the
    rest any other class as likely as the next.
    """
    said = statements(picture, class_names)
    named = 2 if (said.get(TRUE), said.get(PREDICTED)) == right else max(len(stated), 1)
    return ACCURACY + (1 - ACCURACY) * (named - 1) / (len(class_names) - 1)


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.weight(2)
@pytest.mark.shows("predictions_are_captioned")
@pytest.mark.explains("predictions_ask_the_model")
def test_predictions_name_both_labels(student, reference, class_names):
    """Each image carries its true and its predicted label."""
    data, found = shown_images(student, reference, class_names)
    right = [(int(data.labels[p.number]), int(data.predictions[p.number])) for p in found]
    stated = [stated_classes(picture, class_names) for picture in found]
    if not any(stated):
        raise reference.named("labels_missing")
    # where the model is right, one name may stand for both
    telling = [index for index, (true, predicted) in enumerate(right) if true != predicted]
    for order, id_ in ((1, "predicted_label_missing"), (-1, "true_label_missing")):
        if telling and all(tells_only(found[i], *right[i][::order], class_names) for i in telling):
            raise reference.named(id_)
    exchanged = [
        said.get(TRUE) == right[index][1] or said.get(PREDICTED) == right[index][0]
        for index in telling
        if (said := statements(found[index], class_names))
    ]
    shown = [picture.number for picture in found]
    others = "labels_of_other_images" if len(set(shown)) == len(shown) else "image_shown_twice"
    if not all(set(pair) <= names for pair, names in zip(right, stated, strict=True)):
        raise reference.named(others)
    if any(exchanged):
        raise reference.named("labels_exchanged" if all(exchanged) else others)
    if names_are_fixed(student, class_names):
        raise reference.named("example_names_in_fixed_order")
    chances = [chance_of(*each, class_names) for each in zip(found, right, stated, strict=True)]
    if math.prod(chances) > MOST_CHANCE:
        if len(found) < 4 * len(class_names):
            raise Undecided(f"only {len(found)} of the shown images can be compared with the loader's")
        student.policy("several_answers", "The captions name so many classes that they may be right by luck.")


def names_are_fixed(student, class_names):
    """Whether captions name the classes in the usual order, although class_names comes in another."""
    try:
        data, run = two_of_each(student, class_names)
    except Mismatch:
        return False
    _, found = pictures(run, data)
    right = [{int(data.labels[p.number]), int(data.predictions[p.number])} for p in found]
    given, usual = (
        all(pair <= stated_classes(picture, names) for pair, picture in zip(right, found, strict=True))
        for names in (data.class_names, class_names)
    )
    return bool(found) and usual and not given


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.weight(1)
@pytest.mark.shows("predictions_ask_the_model")
def test_predictions_leave_dropout_off(student, reference, class_names):
    """plot_classwise_predictions runs the model in evaluation mode."""
    _, run = drawn(student, "plot_classwise_predictions", class_names)
    if not run.forwards:
        raise Mismatch("The model is never called.", hint="model(images).argmax(dim=1) is what it predicts.")
    if any(forward.training for forward in run.forwards):
        raise reference.named("examples_in_training_mode")
    try:
        _, again = two_of_each(student, class_names)
    except Mismatch:
        return
    advise_on_mode(student, "plot_classwise_predictions", again)
