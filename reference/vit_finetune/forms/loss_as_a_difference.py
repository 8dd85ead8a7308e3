"""The mixed loss as the second loss and a share of the difference.
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    first, second = criterion(logits, labels_a), criterion(logits, labels_b)
    return second + lam * (first - second)
