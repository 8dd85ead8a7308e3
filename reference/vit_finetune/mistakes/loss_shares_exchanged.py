"""The shares are exchanged: labels_a has the share lam.

Look for: return
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return (1 - lam) * criterion(logits, labels_a) + lam * criterion(logits, labels_b)
