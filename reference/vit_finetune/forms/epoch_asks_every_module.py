"""Frozen modules of any kind are put into evaluation mode; hits by a meter; gradients clipped.
"""


class Meter:
    def __init__(self):
        self.sum, self.n = 0.0, 0

    def add(self, value, n):
        self.sum += float(value) * n
        self.n += n


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))
    losses, accuracies = Meter(), Meter()
    for batch in loader:
        x, y = (each.to(device) for each in batch)
        n = y.size(0)
        optimizer.zero_grad(set_to_none=True)
        if mix is None:
            logits = model(x)
            loss = criterion(logits, y)
            accuracy = (logits.argmax(1) == y).float().mean()
        else:
            x, a, b, lam = mix(x, y)
            logits = model(x)
            loss = lam * criterion(logits, a) + (1 - lam) * criterion(logits, b)
            predicted = logits.detach().max(dim=1)[1]
            accuracy = lam * predicted.eq(a).float().mean() + (1 - lam) * predicted.eq(b).float().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.add(loss.detach(), n)
        accuracies.add(accuracy, n)
    return losses.sum / losses.n, accuracies.sum / accuracies.n
