"""The hits of a class are divided by the number of all images.

Look for: _ / len()
"""


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    found = np.full(classes, np.nan)
    for label in range(classes):
        own = targets == label
        if own.any():
            found[label] = (predictions[own] == label).sum() / len(targets)
    return found
