"""Per-class accuracies by bincount, 0 / 0 being NaN.
"""


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = torch.as_tensor(targets), torch.as_tensor(predictions)
    total = torch.bincount(targets, minlength=classes).double()
    right = torch.bincount(targets[targets == predictions], minlength=classes).double()
    return right / total
