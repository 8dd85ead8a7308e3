"""Frozen blocks are in training mode: dropout disturbs what they give, and running statistics move.

After model.train(), call block.eval() for each block in which nothing learns.

Look for: model.train()
"""


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        if not any(weights.requires_grad for weights in block.parameters()):
            block.train()
    total, correct, count = 0.0, 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, labels_a, labels_b, lam = mix(images, labels) if mix else (images, labels, labels, 1.0)
        optimizer.zero_grad()
        logits = model(images)
        loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()
        predictions = logits.argmax(dim=1)
        hits = lam * (predictions == labels_a).sum() + (1 - lam) * (predictions == labels_b).sum()
        total += loss.item() * len(labels)
        correct += float(hits)
        count += len(labels)
    return total / count, correct / count
