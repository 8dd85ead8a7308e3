"""The loss is that of labels_a alone, as if nothing were mixed.

mixed_loss(criterion, logits, labels_a, labels_b, lam)

Look for: criterion()
"""


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        if not any(weights.requires_grad for weights in block.parameters()):
            block.eval()
    total, correct, count = 0.0, 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, labels_a, labels_b, lam = mix(images, labels) if mix else (images, labels, labels, 1.0)
        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels_a)
        loss.backward()
        optimizer.step()
        predictions = logits.argmax(dim=1)
        hits = lam * (predictions == labels_a).sum() + (1 - lam) * (predictions == labels_b).sum()
        total += loss.item() * len(labels)
        correct += float(hits)
        count += len(labels)
    return total / count, correct / count
