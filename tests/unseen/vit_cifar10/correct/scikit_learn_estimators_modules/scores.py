"""Scores in the manner of scikit-learn, written with numpy. (`sklearn.metrics` is what we are to replace.)"""

import csv

import numpy as np


def check_consistent(y_true, y_score):
    y_true, y_score = np.asarray(y_true), np.asarray(y_score, dtype=np.float64)
    if y_true.ndim != 1 or y_score.ndim != 2 or len(y_true) != len(y_score):
        raise ValueError(f"Found inputs of shapes {y_true.shape} and {y_score.shape}.")
    return y_true.astype(np.int64), y_score


def count_confusions(y_true, y_pred, n_classes):
    matrix = np.zeros((n_classes, n_classes), dtype=np.int64)
    for pair, number in zip(*np.unique(np.stack([y_true, y_pred], axis=1), axis=0, return_counts=True)):
        matrix[tuple(pair)] = number
    return matrix


def zero_division(numerator, denominator):
    return np.array([a / b if b else 0.0 for a, b in zip(numerator, denominator)], dtype=np.float64)


def binary_curve(y_true, y_score):
    """False and true positive rates at each of the distinct thresholds, from (0, 0) to (1, 1)."""
    thresholds, inverse = np.unique(y_score, return_inverse=True)
    positives = np.bincount(inverse, weights=y_true, minlength=len(thresholds))[::-1]
    negatives = np.bincount(inverse, weights=1 - y_true, minlength=len(thresholds))[::-1]
    tps, fps = np.cumsum(positives), np.cumsum(negatives)
    return np.concatenate([[0.0], fps / fps[-1]]), np.concatenate([[0.0], tps / tps[-1]])


def area_under_curve(y_true, y_score):
    if np.unique(y_true).size < 2:  # one kind only
        return np.nan
    fpr, tpr = binary_curve(y_true, y_score)
    return np.trapezoid(tpr, fpr)


def average(values, support, kind):
    """kind : {'macro', 'weighted'}; over classes that occur and whose value is a number."""
    use = (support > 0) & ~np.isnan(values)
    if not use.any():
        return float("nan")
    return float(np.average(values[use], weights=support[use] if kind == "weighted" else None))


def classification_metrics(targets, probabilities):
    y_true, y_score = check_consistent(targets, probabilities)
    n_classes = y_score.shape[1]
    y_pred = np.argmax(y_score, axis=1)
    matrix = count_confusions(y_true, y_pred, n_classes)
    hits, support, predicted = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    report = {
        "confusion": matrix,
        "support": support,
        "accuracy": float(np.mean(y_true == y_pred)) if len(y_true) else 0.0,
        "precision": zero_division(hits, predicted),
        "recall": zero_division(hits, support),
        "f1": zero_division(2 * hits, support + predicted),
        "roc_auc": np.array(
            [area_under_curve((y_true == c).astype(int), y_score[:, c]) for c in range(n_classes)], dtype=np.float64
        ),
    }
    for kind in ("macro", "weighted"):
        for name in ("precision", "recall", "f1", "roc_auc"):
            report[f"{kind}_{name}"] = average(report[name], support, kind)
    return report


class DictFlattener:
    """fit_transform(nested) -> list of (name, number): the reverse would be a DictVectorizer."""

    def __init__(self, separator="."):
        self.separator = separator

    def fit_transform(self, nested):
        self.rows_ = []
        self._add((), nested)
        return self.rows_

    def _add(self, names, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                self._add(names + (key,), inner)
            return
        array = np.asarray(value)
        if array.ndim == 1:
            for position in range(array.shape[0]):
                self._add(names + (position,), array[position])
        elif array.ndim == 0:
            self.rows_.append((self.separator.join(map(str, names)), array.item()))


def export_metrics(metrics, path):
    with open(path, mode="w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["metric", "value"])
        writer.writerows(DictFlattener().fit_transform(metrics))
