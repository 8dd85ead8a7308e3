"""An indexed += adds to each cell once, however often its pair of classes occurs: the confusion matrix holds
zeros and ones.

np.add.at counts every image, and so do np.bincount and a loop.

Look for: _[_, _] | _[_][_]
"""


def classification_metrics(targets, probabilities):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    classes = probabilities.shape[1]
    confusion = np.zeros((classes, classes), dtype=np.int64)
    confusion[targets, probabilities.argmax(axis=1)] += 1
    hits, support, predicted = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    found = {
        "precision": hits / np.maximum(predicted, 1),
        "recall": hits / np.maximum(support, 1),
        "f1": 2 * hits / np.maximum(predicted + support, 1),
        "roc_auc": np.array([area_under_curve(targets == k, probabilities[:, k]) for k in range(classes)]),
    }
    means = {}
    for name, values in found.items():
        means[f"macro_{name}"] = weighted_mean(values, (support > 0).astype(float))
        means[f"weighted_{name}"] = weighted_mean(values, support.astype(float))
    return {
        "confusion": confusion,
        "support": support,
        "accuracy": (probabilities.argmax(axis=1) == targets).mean(),
        **found,
        **means,
    }
