"""The model is in training mode: dropout makes the answers random.

model.eval() first.

Look for: train(), body
"""


def evaluate(model, loader, criterion, device):
    model.train()
    total, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images.to(device))
            total += criterion(logits, labels.to(device)).item() * len(labels)
            targets.append(labels)
            predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return total / len(targets), (predictions == targets).float().mean().item(), targets, predictions
