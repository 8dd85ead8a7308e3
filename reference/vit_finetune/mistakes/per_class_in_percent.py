"""The accuracies are in percent; they should be between 0 and 1.

Look for: 100 * _ | _ * 100 | 100.0 * _ | _ * 100.0
"""


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    found = np.full(classes, np.nan)
    for label in range(classes):
        own = targets == label
        if own.any():
            found[label] = (predictions[own] == label).mean()
    return 100 * found
