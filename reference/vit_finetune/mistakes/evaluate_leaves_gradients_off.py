"""Gradients are switched off and not on again: whatever trains after evaluate fails.

Use with torch.no_grad(): around the loop, which ends by itself.

Look for: set_grad_enabled()
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, predictions = 0.0, [], []
    torch.set_grad_enabled(False)
    for images, labels in loader:
        logits = model(images.to(device))
        total += criterion(logits, labels.to(device)).item() * len(labels)
        targets.append(labels)
        predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return total / len(targets), (predictions == targets).float().mean().item(), targets, predictions
