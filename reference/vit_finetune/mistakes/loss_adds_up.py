"""Both losses are added without their shares.

Look for: return
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return criterion(logits, labels_a) + criterion(logits, labels_b)
