"""The loss is a number without gradients, so that nothing can learn from it.

No .item(), no .detach(), no torch.no_grad() in here.

Look for: detach() | item() | no_grad()
"""


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss = lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)
    return loss.detach()
