"""Means kept by a class of one's own; gradients clipped; outputs called logits."""


class Mean:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value, count):
        self.total += float(value) * count
        self.count += count

    @property
    def value(self):
        return self.total / self.count


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    losses, hits = Mean(), Mean()
    for batch in loader:
        inputs, targets = (each.to(device, non_blocking=True) for each in batch)
        logits = model(inputs)
        loss = criterion(logits, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e6)
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.add(loss.detach(), targets.size(0))
        hits.add((logits.argmax(1) == targets).float().mean(), targets.size(0))
    return losses.value, hits.value
