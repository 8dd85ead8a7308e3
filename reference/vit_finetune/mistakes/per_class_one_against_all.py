"""Images of other classes count, too: as right wherever neither target nor prediction is the class.

Take the images whose target is the class, and the share of them that are predicted as it.

Look for: mean() | sum()
"""


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    found = np.full(classes, np.nan)
    for label in range(classes):
        if (targets == label).any():
            found[label] = ((targets == label) == (predictions == label)).mean()
    return found
