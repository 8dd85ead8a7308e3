"""Public checks of accuracies of the classes, and plots."""

import math

import numpy as np
import pytest
import torch

from grader.kit import (
    Fake,
    Mismatch,
    Undecided,
    bar_lengths,
    batches,
    classes_named,
    curves,
    heat_maps,
    history_series,
    image_batches,
    image_numbers,
    measured_by_epochs,
    numbered_images,
    plotted,
    shares_not_shown,
)

CPU = torch.device("cpu")

# class 0 has 4 images, class 1 two, class 3 one; classes 2 and 4 have none
TARGETS, PREDICTIONS = [0, 0, 1, 0, 3, 1, 0], [0, 1, 1, 0, 3, 2, 0]
OF_CLASSES = {0: 0.75, 1: 0.5, 3: 1.0}


@pytest.mark.component("per_class_accuracy")
@pytest.mark.weight(0.25)
def test_each_class_has_an_accuracy(student):
    """per_class_accuracy gives a number for each class."""
    student.call("per_class_accuracy", [0, 1, 1], [0, 1, 0], 2).returned.array(2)


@pytest.mark.component("per_class_accuracy")
@pytest.mark.because("each_class_has_an_accuracy")
@pytest.mark.weight(0.25)
def test_absent_classes_keep_their_places(student):
    """The array has a place for each class, even for one that has no images."""
    found = student.call("per_class_accuracy", TARGETS, PREDICTIONS, 5).returned.array(None, finite=False)
    if found.shape != (5,):
        raise Mismatch(
            f"For 5 classes, of which 2 have no images, the array has the shape {found.shape}.",
            hint="Fill an array of `classes` numbers.",
            look_for="return",
        )


@pytest.mark.component("per_class_accuracy")
@pytest.mark.because("each_class_has_an_accuracy", "absent_classes_keep_their_places")
@pytest.mark.weight(0.25)
def test_accuracies_are_shares_of_each_class(student):
    """A class's accuracy is the share of its own images that are predicted as that class."""
    found = student.call("per_class_accuracy", TARGETS, PREDICTIONS, 5).returned.array(5, finite=False)
    for label, right in OF_CLASSES.items():
        if abs(found[label] - right) > 1e-4 or math.isnan(found[label]):
            own = TARGETS.count(label)
            percent = all(abs(found[each] - 100 * share) < 0.01 for each, share in OF_CLASSES.items())
            raise Mismatch(
                f"Of {own} images of class {label}, {round(right * own)} are predicted correctly: that is "
                f"{right:.2f}. per_class_accuracy gives {found[label]:.2f}.",
                hint="Accuracies are between 0 and 1."
                if percent
                else "The hits of a class, divided by the number of images whose target it is.",
                look_for="100 * _ | _ * 100"
                if percent
                else "predictions == _ | sum(axis=0) | sum(0), _ / len(), _ / _",
            )


@pytest.mark.component("per_class_accuracy")
@pytest.mark.because(
    "each_class_has_an_accuracy", "absent_classes_keep_their_places", "accuracies_are_shares_of_each_class"
)
@pytest.mark.weight(0.25)
def test_absent_classes_have_nan(student):
    """A class that does not occur in the targets has NaN: nobody knows its accuracy."""
    found = student.call("per_class_accuracy", TARGETS, PREDICTIONS, 5).returned.array(5, finite=False)
    for label in (2, 4):
        if not math.isnan(found[label]):
            raise Mismatch(
                f"Class {label} has no images, and per_class_accuracy gives {found[label]:g}; that should be "
                "NaN.",
                hint="Begin with np.full(classes, np.nan).",
                look_for="zeros() | nan_to_num()",
            )


NAMES = ("anvil", "bell", "crown", "drum")
MIXED = ("crown", "anvil", "drum", "bell")  # in no order, so that sorted ones stand elsewhere
MATRIX = np.array([[9, 1, 2, 3], [0, 7, 4, 1], [5, 0, 8, 2], [1, 6, 0, 5]])
SORTS = "argsort() | sort() | sorted() | sort_values() | reversed()"
MAPS = "imshow() | heatmap() | matshow() | pcolormesh() | ConfusionMatrixDisplay()"


BEFORE = (3.0, 0.01)  # loss and accuracy of a model that is not trained yet: worse than all that follows
UNMIXED = [(0.45, 0.81), (0.42, 0.83), (0.35, 0.87), (0.31, 0.92), (0.22, 0.97)]  # of the training images


def history_of_fit(student):
    """(the history of a fit of five epochs, its values)."""
    training = [(0.91, 0.31), (0.72, 0.52), (0.63, 0.63), (0.55, 0.64), (0.51, 0.68)]
    validation = [(0.84, 0.41), (0.75, 0.47), (0.77, 0.52), (0.71, 0.57), (0.70, 0.61)]
    targets = torch.tensor([0, 1])
    methods = {
        "step": Fake.script([False], kind="function", name="step"),
        "restore": Fake.script([None], kind="function", name="restore"),
    }
    images = torch.from_numpy(numbered_images(4, student.next_seed(), (3, 32, 32)))
    loaders = {
        part: batches(each, torch.tensor([0, 1]), [1, 1])
        for part, each in zip(("train", "validation"), images.split(2), strict=True)
    }

    def call_fit(rows):
        fakes = {
            "train_one_epoch": Fake.script(training),
            "evaluate": Fake.script([(*row, targets, targets) for row in rows]),
            "EarlyStopping": Fake.script([None], methods=methods),
        }
        return student.call("fit", student.build("build_model", 4), loaders, (2, 3), CPU, replace=fakes)

    def whose(call):
        colored = [batch for batch in image_batches(student, call) if batch.shape[1:] == images.shape[1:]]
        numbers = {int(number) for batch in colored for number in image_numbers(batch)}
        return {"train" if number < 2 else "validation" for number in numbers}

    fitted = measured_by_epochs(
        call_fit,
        whose,
        trains="train_one_epoch",
        measures="evaluate",
        rows=validation,
        training=UNMIXED,
        before=BEFORE,
        epochs=5,
    )
    if fitted is None:
        raise Undecided("fit measures something else each time, so a person has to look.")
    values = {
        "training loss": [each[0] for each in training],
        "validation loss": [each[0] for each in validation],
        "validation accuracy": [each[1] for each in validation],
    }
    if len(fitted.calls_of("train_one_epoch")) < len(training):
        del values["training loss"]  # fit trains in its own way, or does so in one stage
    if not fitted.calls_of("evaluate"):
        values = history_series(fitted.returned.plain, 5)
        if not any(name.startswith("validation") for name in values):
            raise Undecided("fit measures by itself, and its history names no losses or accuracies of that")
    return fitted.returned.plain, values


def history_drawn(student):
    """(the outcome of plot_history, the values that it should show); drawn once for all checks."""

    def make():
        try:
            history, values = history_of_fit(student)
            return plotted(student, "plot_history", history), values
        except Mismatch as error:
            return error

    found = student.shared("history", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


@pytest.mark.component("plot_history")
@pytest.mark.weight(0.25)
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
    plotted(student, "plot_history", history.plain)


def draws(curve, values):
    """Whether a curve has these values, or the same in percent."""
    return has(curve.y, values)


def has(y, values):
    """Whether these are the values, or the same in percent."""
    return any(
        len(y) == len(values) and np.allclose(y, unit * np.array(values), atol=1e-3 * unit)
        for unit in (1, 100)
    )


@pytest.mark.component("plot_history")
@pytest.mark.because("history_is_drawn")
@pytest.mark.weight(0.25)
def test_history_shows_every_epoch(student):
    """Losses and accuracies of training and validation are drawn for the epochs of both stages."""
    outcome, values = history_drawn(student)
    found = curves(outcome)
    for what, wanted in values.items():
        # of training, what evaluate says of its images as they are is right, too
        shown = [wanted] + [[loss for loss, _ in UNMIXED]] * (what == "training loss")
        ways = [way for each in shown for way in ([each], (each[:2], each[2:]), (each[:2], each[1:]))]
        if any(all(any(draws(curve, piece) for curve in found) for piece in way) for way in ways):
            continue
        alone = [
            name
            for name, part in (("1", wanted[:2]), ("2", wanted[2:]))
            if any(draws(c, part) for c in found)
        ]
        raise Mismatch(
            f"Of the {what}, only the epochs of stage {alone[0]} are drawn."
            if alone
            else f"No curve shows the {what} of all five epochs of a history.",
            hint="Draw each list of the history as a whole, from the first epoch on.",
            look_for="_[_:] | _[:_]" if alone else "plot()",
        )


@pytest.mark.component("plot_history")
@pytest.mark.because("history_is_drawn", "history_shows_every_epoch")
@pytest.mark.weight(0.25)
def test_history_says_what_it_shows(student):
    """Axes and curves have names."""
    outcome, values = history_drawn(student)
    if all(curve.x_label + curve.y_label + curve.title + curve.name == "" for curve in curves(outcome)):
        raise Mismatch(
            "Nothing says what the axes and the curves are.",
            hint="label= for each curve and ax.legend(); ax.set_xlabel and ax.set_ylabel for each axes.",
            look_for="plot()",
        )
    for curve in curves(outcome):
        name, around = curve.name.lower(), (curve.title + curve.y_label).lower()
        said = {part for part, word in (("training", "train"), ("validation", "val")) if word in name}
        drawn = {
            what.partition(" ")[0]
            for what, each in values.items()
            if any(draws(curve, part) for part in (each, each[:2], each[2:], each[1:]))
        }
        # "head training" in an axes of validation may name a stage
        is_told_around = any(part[:3] in around for part in drawn)
        if len(said) == len(drawn) == 1 and said != drawn and not is_told_around:
            raise Mismatch(
                f"The curve of {drawn.pop()} is called {curve.name!r}.",
                hint="label= of each curve says whose values it has.",
                look_for='plot(label="training") | plot(label="train")',
            )


@pytest.mark.component("plot_history")
@pytest.mark.because("history_is_drawn", "history_shows_every_epoch", "history_says_what_it_shows")
@pytest.mark.weight(0.25)
def test_history_marks_stage_2(student):
    """Something marks where stage 2 begins, and its curves begin there."""
    outcome, values = history_drawn(student)
    found = curves(outcome)
    said = " ".join(
        " ".join([figure.title, axes.title, axes.x_label, axes.y_label, *axes.texts, *axes.headings])
        + " ".join([*axes.line_names, *axes.x_ticks])
        for figure in outcome.figures
        for axes in figure.axes
    ).lower()
    upright = any(len(curve.x) >= 2 and np.ptp(curve.x) == 0 for curve in found)
    pieces = any(len(curve.y) in (2, 3) and np.ptp(curve.x) > 0 for curve in found)
    if (
        not upright
        and not pieces
        and not any(word in said for word in ("stage", "phase", "unfre", "fine", "head"))
    ):
        raise Mismatch(
            "Nothing marks where stage 2 begins.",
            hint="ax.axvline draws an upright line.",
            look_for="legend(), plot()",
        )
    for axes in (axes for figure in outcome.figures for axes in figure.axes):
        lines = [outcome.arrays[f"line{number}"] for number in axes.lines]
        marks = [x[0] for x, _ in lines if len(x) >= 2 and np.ptp(x) == 0]
        first = [x for x, y in lines if any(has(y, each[:2]) for each in values.values())]
        second = [x for x, y in lines if any(has(y, each[2:]) for each in values.values())]
        begins = min(min(marks) - 1, max(map(max, first))) if marks and first else -math.inf
        if any(min(x) < begins for x in second):
            raise Mismatch(
                f"Stage 2 begins at {min(marks):g} by the line that marks it, and its curves begin at "
                f"{min(min(x) for x in second):g}: they lie over those of stage 1.",
                hint="Count the epochs on: stage 2 begins where stage 1 ends.",
                look_for="plot()",
            )


@pytest.mark.component("plot_per_class")
@pytest.mark.weight(0.25)
def test_classes_are_drawn(student):
    """plot_per_class draws a figure."""
    plotted(student, "plot_per_class", ["cat", "dog", "cow"], np.array([0.5, 0.7, 0.2]))


@pytest.mark.component("plot_per_class")
@pytest.mark.because("classes_are_drawn")
@pytest.mark.weight(0.25)
def test_bars_have_names(student):
    """Each bar has its class's name, even without an accuracy, and an axis says what is drawn."""
    outcome = plotted(student, "plot_per_class", list(NAMES), np.array([0.4, math.nan, 0.9, 0.7]))
    every = [axes for figure in outcome.figures for axes in figure.axes]
    labels = [text for axes in every for text in (axes.title, axes.x_label, axes.y_label)]
    labels += [figure.title for figure in outcome.figures]
    written = [text for axes in every for text in (*axes.texts, *axes.headings, *axes.line_names)]
    ticks = [text for axes in every for text in (*axes.x_ticks, *axes.y_ticks)]
    named = set(classes_named("\n".join([*labels, *written, *ticks]), NAMES))
    missing = [name for label, name in enumerate(NAMES) if label not in named]
    if missing:
        raise Mismatch(
            f"The names of {len(missing)} of {len(NAMES)} classes are not in the picture.",
            hint="ax.set_xticks(range(len(names)), names)",
            look_for="bar() | barh()",
        )
    if not any(labels):
        raise Mismatch(
            "Nothing says what the bars' length is: no axis has a label, and there is no title.",
            hint='ax.set_ylabel("accuracy")',
            look_for="bar() | barh()",
        )


def require_shown(outcome, accuracies):
    """Check that bars, lines, maps or texts show the accuracies, as shares or in percent."""
    for accuracy in shares_not_shown(outcome, accuracies, NAMES):
        raise Mismatch(
            f"A class has the accuracy {accuracy:.2f}, which no bar, no line and no number in the figure "
            "shows.",
            hint="ax.bar(range(len(names)), accuracies)",
            look_for="title() | set_title()",
        )


@pytest.mark.component("plot_per_class")
@pytest.mark.because("classes_are_drawn", "bars_have_names")
@pytest.mark.weight(0.25)
def test_bars_are_as_long_as_accuracies(student):
    """The bar beside a class's name is as long as that class's accuracy, and one without has none."""
    accuracies = np.array([0.4, math.nan, 0.9, 0.7])
    outcome = plotted(student, "plot_per_class", list(NAMES), accuracies)
    lengths = bar_lengths(outcome, NAMES)
    beside = [lengths.get(label, []) for label in range(len(NAMES))]
    if [len(each) for each in beside] == [1, 1, 1, 0] and beside[1][0] > beside[2][0] > 0:
        raise Mismatch(
            f"Beside {NAMES[1]!r}, which has no accuracy, is the bar of {NAMES[2]!r}; beside {NAMES[3]!r} is "
            "none: bars have moved up.",
            hint="Where an accuracy is NaN, leave out the bar and the name, or neither.",
            look_for="isnan() | isfinite() | dropna(), bar() | barh()",
        )
    if any(len(lengths.get(label, ())) != 1 for label in (0, 2, 3)):
        require_shown(outcome, accuracies)
        return  # not bars, or their names are elsewhere
    drawn = np.array([lengths.get(label, [0.0])[0] for label in range(len(NAMES))])
    drawn, wanted = drawn / (100 if np.abs(drawn).max() > 1.5 else 1), np.nan_to_num(accuracies)
    wrong = np.flatnonzero(np.abs(drawn - wanted) > 0.005)
    if not len(wrong):
        return
    label = wrong[0]
    said = f"its accuracy is {wanted[label]:.2f}" if wanted[label] else "it has no accuracy"
    sentence = f"The bar beside {NAMES[label]!r} is {drawn[label]:.2f} long; {said}."
    if np.allclose(np.sort(drawn), np.sort(wanted), atol=0.005):
        raise Mismatch(
            f"{sentence} The bars have the right lengths, and stand beside other classes' names.",
            hint="Names and accuracies belong together: sort both by one order, or neither.",
            look_for=f"{SORTS}, bar() | barh()",
        )
    raise Mismatch(
        sentence, hint="Draw the accuracies as they are given, and NaN as nothing.", look_for="bar() | barh()"
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(0.25)
def test_matrix_is_drawn(student):
    """plot_confusion_matrix draws a figure."""
    plotted(student, "plot_confusion_matrix", np.array([[3, 1], [0, 4]]), ["cat", "dog"])


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("matrix_is_drawn")
@pytest.mark.weight(0.25)
def test_matrix_has_the_true_classes_as_rows(student):
    """The counts are shown as they are given, with the true classes as rows."""
    found = heat_maps(plotted(student, "plot_confusion_matrix", MATRIX, list(MIXED)), MIXED, whole=True)
    if not found:
        raise Mismatch(
            "No figure shows a map of 4 x 4 counts.", hint="imshow, pcolormesh or a heat map.", look_for=MAPS
        )
    shown = found[0]
    maps, right = (shown.values, shown.counted), forms_of(shown)
    if is_shown(maps, right) or is_shown(maps, named_forms_of(shown)):
        return
    if is_shown([values.T for values in maps], right):
        raise Mismatch(
            "The map is transposed: its rows are the predicted classes"
            + (", although the axes say otherwise." if shown.row_role or shown.column_role else "."),
            hint="Show the matrix as it is given: its rows are the true classes.",
            look_for=f"_.T | transpose(), {MAPS}",
        )
    raise Mismatch("What the map shows is not the matrix.", look_for=MAPS)


def forms_of(shown):
    """The counts, and the shares of the true classes as such and in percent, with how far each is rounded."""
    rows = MATRIX / MATRIX.sum(axis=1, keepdims=True)
    is_turned = shown.row_role == "predicted" or shown.column_role == "true"
    forms = ((MATRIX, 1e-2), (rows, 6e-3), (100 * rows, 0.51))
    return [(form.T if is_turned else form, rounded) for form, rounded in forms]


def named_forms_of(shown):
    """The same, with rows and columns in the order in which the map names them, if it does."""
    if not shown.is_named:
        return forms_of(shown)
    order = np.ix_(shown.row_classes, shown.column_classes)
    return [(form[order], rounded) for form, rounded in forms_of(shown)]


def is_shown(maps, forms):
    """Whether one of the maps is one of the forms."""
    return any(np.allclose(values, form, rtol=0, atol=rounded) for values in maps for form, rounded in forms)


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("matrix_is_drawn", "matrix_has_the_true_classes_as_rows")
@pytest.mark.weight(0.25)
def test_matrix_names_its_classes(student):
    """The names of all classes are on both axes, each beside its own row and column, as the numbers are."""
    found = heat_maps(plotted(student, "plot_confusion_matrix", MATRIX, list(MIXED)), MIXED, whole=True)
    if not found:
        return
    shown = found[0]
    if not shown.is_named:
        raise Mismatch(
            "The names of the classes are not on both axes.",
            hint="ax.set_xticks(range(len(class_names)), class_names), and set_yticks in the same way.",
            look_for=MAPS,
        )
    named = named_forms_of(shown)
    maps = (shown.values, shown.counted)
    if not is_shown(maps, named):
        if not is_shown(maps, forms_of(shown)):
            return  # of another matrix one cannot say where the names belong
        raise Mismatch(
            "The names of the classes stand beside rows or columns of other classes.",
            hint="Row i and column i belong to class_names[i]: hand the names over in their order.",
            look_for="_[::-1] | sorted() | reversed(), yticks() | set_yticks() | set_yticklabels()",
        )
    if is_shown((shown.written.T,), named) and not is_shown((shown.written,), named):
        raise Mismatch(
            "The numbers in the cells are those of the cells on the other side of the diagonal.",
            hint="ax.text(column, row, matrix[row, column]): x runs along the columns.",
            look_for="text() | annotate()",
        )
