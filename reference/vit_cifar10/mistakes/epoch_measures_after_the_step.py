"""Loss and hits are those after a batch's step, by the changed weights: training looks better than it was.

Measure the scores of which the gradients are, before the step.

Look for: model()
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
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        with torch.no_grad():
            scores = model(images)
            loss = criterion(scores, labels)
        total += loss.item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
    return total / count, correct / count
