"""The gradients of earlier batches are never cleared: every step uses their sum.

optimizer.zero_grad() for each batch.

Look for: loop
"""


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    total, correct, count = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        total += loss.item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
    return total / count, correct / count
