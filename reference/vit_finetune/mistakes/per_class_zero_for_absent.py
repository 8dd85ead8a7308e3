"""A class that does not occur is given the accuracy 0; its accuracy is unknown, so it should be NaN.

Look for: zeros()
"""


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    found = np.zeros(classes)
    for label in range(classes):
        own = targets == label
        if own.any():
            found[label] = (predictions[own] == label).mean()
    return found
