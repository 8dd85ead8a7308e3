"""Labels are smoothed here, although the criterion smooths them by itself.

Call the criterion with the labels as they are.

Look for: log_softmax()
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss = lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)
    return 0.9 * loss - 0.1 * logits.log_softmax(dim=1).mean()
