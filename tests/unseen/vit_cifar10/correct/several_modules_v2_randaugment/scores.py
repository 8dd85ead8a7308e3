"""Measures of a classifier, with numpy, and how they are written to a file."""

import numpy as np


def safe_divide(a, b):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b == 0, 0.0, a / b)


def roc_curve(is_positive, scores):
    """False and true positive rates from (0, 0) to (1, 1), one point for each different score."""
    thresholds = np.unique(scores)[::-1]
    tp = np.array([np.sum(is_positive & (scores >= t)) for t in thresholds])
    fp = np.array([np.sum(~is_positive & (scores >= t)) for t in thresholds])
    fpr = np.concatenate([[0.0], fp / np.sum(~is_positive)])
    tpr = np.concatenate([[0.0], tp / np.sum(is_positive)])
    return fpr, tpr


def one_auc(is_positive, scores):
    if is_positive.all() or not is_positive.any():
        return np.nan
    fpr, tpr = roc_curve(is_positive, scores)
    # trapezoids: a step with ties in it is slanted, which is the half for each tied pair
    return float(np.sum((fpr[1:] - fpr[:-1]) * (tpr[1:] + tpr[:-1]) / 2))


def classification_metrics(targets, probabilities):
    targets = np.asarray(targets).ravel().astype(int)
    probabilities = np.asarray(probabilities)
    count = probabilities.shape[1]
    confusion = np.zeros((count, count), dtype=int)
    np.add.at(confusion, (targets, np.argmax(probabilities, axis=1)), 1)

    true_positive = np.diagonal(confusion)
    support = confusion.sum(1)
    precision = safe_divide(true_positive, confusion.sum(0))
    recall = safe_divide(true_positive, support)
    f1 = safe_divide(2 * precision * recall, precision + recall)
    roc_auc = np.array([one_auc(targets == c, probabilities[:, c]) for c in range(count)], dtype=float)

    metrics = {
        "accuracy": float(safe_divide(true_positive.sum(), confusion.sum())),
        "confusion": confusion,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "roc_auc": roc_auc,
        "support": support,
    }
    for name, values in {"precision": precision, "recall": recall, "f1": f1, "roc_auc": roc_auc}.items():
        weights = np.where(np.isnan(values), 0, support)
        there = weights > 0
        if there.any():
            metrics["macro_" + name] = float(values[there].mean())
            metrics["weighted_" + name] = float(np.dot(values[there], weights[there]) / weights.sum())
        else:
            metrics["macro_" + name] = metrics["weighted_" + name] = np.nan
    return metrics


def _lines(value, name):
    if isinstance(value, dict):
        items = value.items()
    elif np.ndim(value) == 1:
        items = enumerate(np.asarray(value).tolist())
    elif np.ndim(value) > 1:
        return []
    else:
        return [f"{name},{float(value)!r}\n"]
    return [line for key, part in items for line in _lines(part, f"{name}.{key}" if name else str(key))]


def export_metrics(metrics, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("metric,value\n")
        file.writelines(_lines(metrics, ""))
