"""The loss is that of labels_a alone: what is mixed in is not learned.

Look for: return
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return criterion(logits, labels_a)
