"""A class that does not occur is left out, so that later classes are in the wrong places.

Look for: return
"""


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    found = np.full(classes, np.nan)
    for label in range(classes):
        own = targets == label
        if own.any():
            found[label] = (predictions[own] == label).mean()
    return found[~np.isnan(found)]
