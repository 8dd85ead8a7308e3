"""The hits are divided by the predictions of each class (that is its precision); divide by its own images.

Look for: predictions == _ | sum(axis=0) | sum(0)
"""


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    found = np.full(classes, np.nan)
    for label in range(classes):
        own = predictions == label
        if own.any():
            found[label] = (targets[own] == label).mean()
    return found
