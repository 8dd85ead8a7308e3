"""The mean loss is the mean of the batches' means, which differs from the mean over images when the last
batch is smaller.

Add up loss.item() * len(labels), and divide by the number of images.

Look for: _ / len()
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
        total += loss.item()
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
    return total / len(loader), correct / count
