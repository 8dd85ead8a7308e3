"""Gradients clipped by their norm, as they are often."""


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    total, correct, count = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        total += loss.item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
    return total / count, correct / count
