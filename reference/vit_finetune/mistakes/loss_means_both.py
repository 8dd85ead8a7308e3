"""Both losses count one half, whatever lam is.

Look for: return
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return (criterion(logits, labels_a) + criterion(logits, labels_b)) / 2
