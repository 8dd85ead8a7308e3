"""Per-class accuracies from a confusion matrix.
"""


def per_class_accuracy(targets, predictions, classes):
    matrix = np.zeros((classes, classes))
    for target, prediction in zip(targets, predictions):
        matrix[int(target)][int(prediction)] += 1
    with np.errstate(invalid="ignore"):
        return np.diag(matrix) / matrix.sum(axis=1)
