"""The labels are mixed into one and rounded: the loss is that of a third class.

Mix the losses, not the labels.

Look for: return
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return criterion(logits, (lam * labels_a + (1 - lam) * labels_b).round().long())
