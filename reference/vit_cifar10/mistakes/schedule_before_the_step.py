"""The schedule takes its step before the optimizer: its first rate is never used.

First optimizer.step(), then scheduler.step().

Look for: scheduler.step()
"""


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    total, correct, count = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        if scheduler is not None:
            scheduler.step()
        optimizer.step()
        total += loss.item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
    return total / count, correct / count
