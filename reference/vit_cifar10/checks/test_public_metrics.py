"""Public checks of metrics, their file and their plots."""

import numpy as np
import pytest
import torch

from grader.kit import (
    PREDICTED,
    TRUE,
    Fake,
    Mismatch,
    Undecided,
    batches,
    classes_named,
    csv_rows,
    curves,
    figure_text,
    heat_maps,
    measured_by_epochs,
    plotted,
    quoted,
)


def numbers(value, *shape):
    """What a student gives as an array, whole numbers or not."""
    try:
        return value.array(*shape, whole=True)
    except Mismatch:
        return value.array(*shape, finite=False)


# nine images of three classes: what a classifier said of them, and what is to be measured then
SAID = np.array(
    [
        [0.80, 0.15, 0.05], [0.70, 0.20, 0.10], [0.55, 0.25, 0.20], [0.31, 0.58, 0.11], [0.26, 0.45, 0.29],
        [0.24, 0.30, 0.46], [0.34, 0.12, 0.54], [0.19, 0.18, 0.63], [0.21, 0.27, 0.52],
    ]
)  # fmt: skip
TRUE_CLASSES = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
COUNTS = np.array([[3, 1, 0], [0, 1, 2], [0, 0, 2]])
OF_CLASSES = {
    "precision": [1, 0.5, 0.5], "recall": [0.75, 1 / 3, 1], "f1": [0.8571, 0.4, 0.6667], "support": [4, 3, 2]
}  # fmt: skip
AREAS, AREAS_OF_PREDICTIONS = [0.95, 0.5556, 0.9286], [0.875, 0.5833, 0.8571]
MACRO = {"precision": 0.6667, "recall": 0.6944, "f1": 0.6413, "roc_auc": 0.8114}
WEIGHTED = {"precision": 0.7222, "recall": 0.6667, "f1": 0.6624, "roc_auc": 0.8138}

# the same as weighted_, but weighted by how often a class was predicted
BY_PREDICTIONS = {"precision": 0.6667, "recall": 0.7685, "f1": 0.6709}
HINTS = {
    "macro": "macro_: the plain mean over the classes that occur.",
    "weighted": "weighted_: by support, how often each class occurs, divided by its sum.",
}


def measured(student, targets, probabilities):
    """What classification_metrics returns."""
    return student.call("classification_metrics", targets, probabilities).returned


def listed(values):
    """Numbers, separated by commas."""
    return ", ".join(f"{float(value):.4g}" for value in np.asarray(values).flatten())


@pytest.mark.component("classification_metrics")
@pytest.mark.weight(0.25)
def test_metrics_are_there(student):
    """classification_metrics gives the confusion matrix and the measures of each class."""
    returned = measured(student, np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]))
    returned.at("confusion").items(2, "rows")
    for name in ("precision", "recall", "f1", "support", "roc_auc"):
        returned.at(name).items(2, "numbers, one for each class")


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_are_there")
@pytest.mark.weight(0.25)
def test_metrics_count_each_image(student):
    """The confusion matrix counts each image: the row is its true class, the column the predicted one."""
    found = numbers(measured(student, TRUE_CLASSES, SAID).at("confusion"), 3, 3)
    if np.array_equal(found, COUNTS):
        return
    if np.array_equal(found, COUNTS > 0):
        raise Mismatch(
            "The confusion matrix holds only zeros and ones: each pair of classes is counted once, however "
            "often it occurs.",
            hint="An indexed += adds to a cell once; np.add.at, np.bincount or a loop count every image.",
            look_for="_[_, _] | _[_][_]",
        )
    if np.array_equal(found, COUNTS.T):
        raise Mismatch(
            "The confusion matrix is transposed: an image of class 0 that is taken for class 1 stands in "
            "row 1.",
            hint="Rows are the true classes: confusion[target, prediction].",
            look_for="_.T, at() | bincount(), _[_, _] | _[_][_]",
        )
    raise Mismatch(
        f"For 9 images, the confusion matrix holds {listed(found)}, row by row; it should hold "
        f"{listed(COUNTS)}.",
        hint="Its entry [i, j] is how many images of class i have their largest probability at class j.",
    )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_are_there", "metrics_count_each_image")
@pytest.mark.weight(0.25)
def test_metrics_of_each_class_are_right(student):
    """Precision, recall, F1 and support of each class are right."""
    returned = measured(student, TRUE_CLASSES, SAID)
    found = {name: numbers(returned.at(name), 3) for name in OF_CLASSES}

    def fits(name, expected):
        return np.allclose(found[name], expected, atol=1e-3)

    if fits("precision", OF_CLASSES["recall"]) and fits("recall", OF_CLASSES["precision"]):
        raise Mismatch(
            "Precision and recall are exchanged.",
            hint="Precision divides by how often a class was predicted, recall by how often it occurs.",
            look_for="precision",
        )
    for name, expected in OF_CLASSES.items():
        if fits(name, expected):
            continue
        plain = name == "f1" and fits("f1", [0.875, 0.4167, 0.75])
        harmonic = "2 * precision * recall / (precision + recall), of each class."
        hints = {
            "precision": "What is right of a class, divided by how often it was predicted: a column's sum.",
            "recall": "What is right of a class, divided by how often it occurs: a row's sum.",
            "support": "How often each class occurs in the targets.",
        }
        raise Mismatch(
            f"'{name}' is {listed(found[name])}; it should be {listed(expected)}"
            + (": it is the plain mean of precision and recall, not their harmonic mean." if plain else "."),
            hint=hints.get(name, harmonic),
            look_for="_ / 2 | 0.5 * _ | _ * 0.5 | mean()" if plain else name,
        )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_are_there")
@pytest.mark.weight(0.25)
def test_metrics_have_the_area_under_the_curve(student):
    """ROC-AUC is the share of pairs in which the positive has the larger probability."""
    found = numbers(measured(student, TRUE_CLASSES, SAID).at("roc_auc"), 3)
    if np.allclose(found, AREAS, atol=1e-3):
        return
    if np.allclose(found, AREAS_OF_PREDICTIONS, atol=1e-3):
        raise Mismatch(
            f"'roc_auc' is {listed(found)}, as of the predicted labels; of the probabilities it is "
            f"{listed(AREAS)}.",
            hint="For class k, compare the column k of the probabilities: a curve of labels has one corner.",
            look_for="argmax()",
        )
    raise Mismatch(
        f"'roc_auc' is {listed(found)}; it should be {listed(AREAS)}.",
        hint="For class k: of all pairs of an image of k and another one, the share in which the image of "
        "k has the larger probability of k.",
    )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_have_the_area_under_the_curve")
@pytest.mark.weight(0.25)
def test_metrics_count_ties_as_one_half(student):
    """In the ROC-AUC, a pair with equal probabilities counts one half."""
    likely = np.array([0.5, 0.5, 0.9, 0.2])
    returned = measured(student, np.array([0, 1, 1, 0]), np.stack([1 - likely, likely], axis=1))
    found = numbers(returned.at("roc_auc"), 2)
    if not np.allclose(found, 0.875, atol=1e-3):
        raise Mismatch(
            f"For positives with 0.5 and 0.9 and negatives with 0.5 and 0.2, 'roc_auc' is {found[1]:.3f}; "
            "three and a half of four pairs are 0.875.",
            hint="Of a tied pair, one half counts: equal scores share the mean of their ranks.",
            look_for="argsort() | sort() | sorted()",
        )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_of_each_class_are_right", "metrics_have_the_area_under_the_curve")
@pytest.mark.weight(0.25)
def test_metrics_have_two_kinds_of_means(student):
    """macro_ are plain means over the classes, weighted_ those by support."""
    returned = measured(student, TRUE_CLASSES, SAID)
    found = {
        kind: {name: returned.at(f"{kind}_{name}").number(finite=False) for name in MACRO}
        for kind in ("macro", "weighted")
    }

    def fits(kind, expected):
        return all(abs(found[kind][name] - expected[name]) < 1e-3 for name in expected)

    if fits("macro", WEIGHTED) and fits("weighted", MACRO):
        raise Mismatch(
            "The macro means and the weighted means are exchanged.",
            hint="macro_: each class counts once; weighted_: as often as it occurs.",
        )
    for kind, expected in (("macro", MACRO), ("weighted", WEIGHTED)):
        for name, value in expected.items():
            own, key = found[kind][name], f"{kind}_{name}"
            if abs(own - value) < 1e-3:
                continue
            why, hint = "", HINTS[kind]
            if kind == "macro" and name == "f1" and abs(own - 0.6803) < 1e-3:
                why = "it is made from macro_precision and macro_recall"
                hint = "The mean of the classes' F1, each computed from its own precision and recall."
            elif kind == "weighted" and fits(kind, BY_PREDICTIONS):
                why = "it is weighted by how often each class was predicted, not by how often it occurs"
            raise Mismatch(
                f"'{key}' is {own:.4f}; it should be {value:.4f}{f': {why}' if why else ''}.",
                hint=hint,
                look_for=f'"{key}", "{kind}_", "{kind}"',
            )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_of_each_class_are_right", "metrics_have_two_kinds_of_means")
@pytest.mark.weight(0.25)
def test_metrics_know_classes_that_do_not_occur(student):
    """A class that does not occur has 0 where 0 / 0 would stand, and NaN for ROC-AUC; no mean counts it."""
    said = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.25, 0.7, 0.05], [0.05, 0.8, 0.15]])
    returned = measured(student, np.array([0, 0, 1, 1]), said)
    for name in ("precision", "recall", "f1"):
        found = numbers(returned.at(name), 3)[2]
        if not abs(found) < 1e-9:
            raise Mismatch(
                f"For a class that neither occurs nor is predicted, '{name}' is {found:.3g}; what would be "
                "0 / 0 should be 0.",
                hint="Divide by the count where it is not 0, and by 1 elsewhere: the count above is 0 then.",
                look_for=name,
            )
    area = numbers(returned.at("roc_auc"), 3)[2]
    if not np.isnan(area):
        raise Mismatch(
            f"For a class that does not occur, 'roc_auc' is {area:.3g}; without positives there are no "
            "pairs, and it should be NaN.",
            hint='float("nan") for a class without positives or without negatives.',
            look_for="nan_to_num() | nan_to_num(_, nan=0.5), 0.5",
        )
    recall = returned.at("macro_recall").number(finite=False)
    if not abs(recall - 0.75) < 1e-3:
        raise Mismatch(
            f"For recalls of 0.5 and 1 and a class that does not occur, 'macro_recall' is {recall:.3f}; the "
            "mean over the classes that occur is 0.75.",
            hint="Take the mean over the classes whose support is not 0.",
        )


@pytest.mark.component("export_metrics")
@pytest.mark.weight(0.25)
def test_export_writes_a_file(student):
    """export_metrics writes a CSV."""
    outcome = student.call("export_metrics", {"vit": {"accuracy": 0.5}}, "metrics.csv", reads=["metrics.csv"])
    outcome.file("metrics.csv")


@pytest.mark.component("export_metrics")
@pytest.mark.because("export_writes_a_file")
@pytest.mark.weight(0.25)
def test_export_joins_the_names(student):
    """The columns are metric and value; a nested name joins the names by dots, numbers counted from 0."""
    given = {"vit": {"accuracy": 0.5, "f1": np.array([0.25, 0.75]), "recall": {"ox": 0.125}}}
    content = student.call("export_metrics", given, "metrics.csv", reads=["metrics.csv"]).file("metrics.csv")
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines() if line.strip()]
    if lines and "accuracy" in lines[0] and "metric" not in lines[0].lower():
        raise Mismatch(
            f"The first line of the CSV is {quoted(lines[0])}; it should name the columns: metric,value.",
            hint='Write a first row with "metric" and "value".',
            look_for="writer() | DictWriter(), open()",
        )
    rows = csv_rows(content, {"metric": str, "value": float}, name="metrics.csv")
    names = [row["metric"] for row in rows]
    wanted = {"vit.accuracy": 0.5, "vit.f1.0": 0.25, "vit.f1.1": 0.75, "vit.recall.ox": 0.125}
    missing = next((name for name in wanted if name not in names), None)
    if missing is not None:
        has = ", ".join(quoted(name, 30) for name in names[:6]) or "none"
        if missing == "vit.f1.0" and "vit.f1.1" in names:
            said, hint, look_for = "counted from 1", "The numbers of an array count from 0.", "enumerate()"
        elif "accuracy" in names:
            said, hint = "without the outer ones", "Hand the name so far on to what is within: vit.accuracy."
            look_for = ""
        else:
            said, hint, look_for = "joined otherwise", 'Names are joined by dots: f"{outer}.{inner}".', ""
        raise Mismatch(
            f"The CSV has no row {quoted(missing)}: the names are {said}. Its rows are {has}.",
            hint=hint,
            look_for=look_for,
        )
    for row in rows:
        if row["metric"] in wanted and abs(row["value"] - wanted[row["metric"]]) > 1e-6:
            raise Mismatch(
                f"In the CSV, {quoted(row['metric'])} is {row['value']:g}; it should be "
                f"{wanted[row['metric']]:g}."
            )


CLASS_NAMES = ("anvil", "bell", "crown")


def history_of_three_epochs(student):
    """What fit returns where evaluate answers by epoch, and otherwise for training images."""
    images, labels = torch.zeros(2, 3, 8, 8), torch.tensor([0, 1])
    loaders = {"train": batches(images, labels, [1, 1]), "validation": batches(images, labels, [2])}

    def fit(answers):
        evaluations = [
            {
                "loss": loss, "accuracy": accuracy, "targets": labels, "predictions": labels,
                "probabilities": torch.full((2, 2), 0.5),
            }
            for loss, accuracy in answers
        ]  # fmt: skip
        fakes = {
            "train_epoch": Fake.script([(0.91, 0.31), (0.72, 0.52), (0.63, 0.63)]),
            "evaluate": Fake.script(evaluations),
        }
        fake = Fake.script([0.0], name="VisionTransformer", parameters={"weight": (2, 2)})
        model = student.keep(fake, "plot_learning_curves")
        return student.call("fit", model, loaders, 3, torch.device("cpu"), replace=fakes)

    outcome = measured_by_epochs(
        fit,
        lambda call: {"train" if is_of_training(student, call) else "validation"},
        trains="train_epoch",
        measures="evaluate",
        rows=[(0.84, 0.41), (0.75, 0.47), (0.77, 0.45)],
        training=[(0.54, 0.71), (0.53, 0.72), (0.52, 0.73)],
        before=(2.0, 0.05),
        epochs=3,
    )
    if outcome is None:
        raise Undecided("fit measures something else each time, so a person has to look.")
    return outcome.returned


def is_of_training(student, call):
    """Whether a call of evaluate gets training images: those are in two batches, the others in one."""
    given = (*call.args, *call.kwargs.values())
    loader = next((value for value in given if getattr(value, "kind", "") == "object"), None)
    if loader is None:
        return False
    return student.attempted(lambda: loader.call("__len__").returned.whole_number()) == 2


@pytest.mark.component("plot_learning_curves")
@pytest.mark.weight(0.25)
def test_curves_show_training_and_validation(student):
    """The history of three epochs makes curves of three points, of training and of validation, with names."""
    history = student.attempted(lambda: history_of_three_epochs(student))
    if history is None:
        raise Mismatch("There is no history to draw: fit has to work first.")
    outcome = plotted(student, "plot_learning_curves", history.plain)
    found = [curve for curve in curves(outcome) if len(curve.y) == 3]

    def shown(*values):
        return any(
            np.allclose(curve.y, factor * np.array(values), atol=1e-3 * factor)
            for curve in found
            for factor in (1, 100)
        )

    if shown(0.91, 0.72, 0.63) and not shown(0.84, 0.75, 0.77) and not shown(0.41, 0.47, 0.45):
        raise Mismatch(
            "There is a curve of the training loss, and none of the validation.",
            hint="Draw losses and accuracies of the validation beside those of the training.",
            look_for="plot()",
        )
    named_axes = [
        axes.x_label + axes.y_label + axes.title for figure in outcome.figures for axes in figure.axes
    ]
    names = [curve.name + curve.x_label + curve.y_label + curve.title for curve in found]
    if found and not any(names) and not any(named_axes):
        raise Mismatch(
            "Neither the axes nor the curves have names.",
            hint="label= for each curve, legend(), and labels of both axes.",
            look_for="plot()",
        )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(0.25)
def test_confusion_matrix_draws(student):
    """plot_confusion_matrix draws a figure."""
    plotted(student, "plot_confusion_matrix", np.array([[3, 1], [0, 4]]), ["a", "b"])


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("confusion_matrix_draws")
@pytest.mark.weight(0.25)
def test_confusion_matrix_has_true_classes_as_rows(student):
    """Rows are the true classes, and the names stand on both axes."""
    matrix = np.array([[30, 4, 1], [9, 20, 2], [5, 7, 10]])
    outcome = plotted(student, "plot_confusion_matrix", matrix, list(CLASS_NAMES))
    found = heat_maps(outcome, CLASS_NAMES, whole=True)
    if not found:
        return
    shown = found[0]
    values, written, rows, columns = shown.values, shown.written, shown.row_classes, shown.column_classes
    if shown.row_role == PREDICTED or shown.column_role == TRUE:
        values, written, rows, columns = values.T, written.T, columns, rows
    shares = matrix / matrix.sum(axis=1, keepdims=True)
    ways = (matrix, shares, 100 * shares)
    by_names = np.ix_(rows, columns) if shown.is_named else ...
    if not any(np.allclose(values, way[by_names], atol=1e-2) for way in ways):
        if any(np.allclose(values, way, atol=1e-2) for way in ways):
            raise Mismatch(
                "The names on the axes do not stand beside the rows and columns of their own classes.",
                hint="set_xticks and set_yticks with range(len(class_names)) and class_names, in that order.",
                look_for="set_yticks() | yticks() | set_yticklabels(), set_xticks() | xticks() | "
                "set_xticklabels()",
            )
        if any(np.allclose(values.T, way, atol=1e-2) for way in ways):
            raise Mismatch(
                "The matrix is shown transposed: its first row, the anvils, stands in the first column.",
                hint="Show the matrix as it is given: its rows are the true classes.",
                look_for="imshow() | heatmap() | matshow() | pcolormesh() | pcolor()",
            )
    if not shown.is_named:
        raise Mismatch(
            "The names of the classes are not on both axes.",
            hint="set_xticks and set_yticks with range(len(class_names)) and class_names.",
            look_for="imshow() | heatmap() | matshow() | pcolormesh() | pcolor()",
        )
    if np.array_equal(written, matrix[by_names].T):
        raise Mismatch(
            "The counts are written into the cells with rows and columns exchanged, unlike the colors.",
            hint="ax.text(x, y, count): x is the column, y the row.",
            look_for="text() | annotate()",
        )


@pytest.mark.component("plot_roc")
@pytest.mark.weight(0.25)
def test_roc_draws(student):
    """plot_roc draws a figure."""
    shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    plotted(student, "plot_roc", np.array([0, 1, 1]), shares, ["a", "b"])


def area(curve):
    """The area under a curve, from whichever side it comes."""
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    return abs(float(((y[1:] + y[:-1]) / 2 * (x[1:] - x[:-1])).sum()))


def leaves_out(curve, label):
    """Whether the points of a curve are corners of a class's own, both ends too, and many are missing."""
    positive, scores = label == TRUE_CLASSES, SAID[:, label]
    corners = {(0.0, 0.0)} | {
        ((scores[~positive] >= each).mean(), (scores[positive] >= each).mean()) for each in scores
    }
    points = {(round(float(x), 6), round(float(y), 6)) for x, y in zip(curve.x, curve.y, strict=True)}
    known = {(round(float(x), 6), round(float(y), 6)) for x, y in corners}
    return {(0.0, 0.0), (1.0, 1.0)} < points < known and len(points) <= 0.75 * len(known)


@pytest.mark.component("plot_roc")
@pytest.mark.because("roc_draws")
@pytest.mark.weight(0.25)
def test_roc_has_a_curve_for_each_class(student):
    """Each class has its ROC curve, with its name: the false positive rate is the horizontal axis."""
    outcome = plotted(student, "plot_roc", TRUE_CLASSES, SAID, list(CLASS_NAMES))
    areas, begun = [], []
    for curve in curves(outcome):
        x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
        if len(x) > 2 and np.isfinite(x).all() and np.isfinite(y).all():
            areas.append(area(curve))
            begun.append(bool((np.abs(x) + np.abs(y)).min() < 1e-6))
    if begun and not any(begun):
        raise Mismatch(
            "No curve begins at (0, 0), where no image is called positive.",
            hint="Put a threshold above all probabilities in front, or the point (0, 0).",
            look_for="unique() | sort() | argsort(), plot()",
        )

    def shown(wanted):
        return all(any(abs(area - each) < 5e-3 for area in areas) for each in wanted)

    if not shown(AREAS):
        if shown([1 - each for each in AREAS]):
            raise Mismatch(
                "The axes are exchanged: the false positive rate should be the horizontal one.",
                hint="plot(false_positive_rates, true_positive_rates)",
                look_for="plot(_, _, label=_), plot()",
            )
        if shown(AREAS_OF_PREDICTIONS):
            raise Mismatch(
                "The curves are those of the predicted labels, with a single corner each.",
                hint="Each class's curve is made from its column of the probabilities: each of them is a "
                "threshold.",
                look_for="argmax()",
            )
        # a right curve may leave out corners that lie on a line
        others = [
            curve for curve in curves(outcome) if not any(abs(area(curve) - each) < 5e-3 for each in AREAS)
        ]
        if any(leaves_out(curve, label) for curve in others for label in range(len(CLASS_NAMES))):
            raise Mismatch(
                "A curve has fewer corners than its class has: it is drawn at a few thresholds.",
                hint="Each probability that occurs is a threshold: np.unique.",
                look_for="linspace() | arange()",
            )
        return
    missing = [
        name
        for label, name in enumerate(CLASS_NAMES)
        if label not in classes_named(figure_text(outcome), CLASS_NAMES)
    ]
    if missing:
        raise Mismatch(
            f"Nothing in the figure says which curve is that of the class {missing[0]!r}.",
            hint="label=name for each curve, and legend().",
            look_for="plot()",
        )
