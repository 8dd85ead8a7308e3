"""Targets and predictions are returned in each other's places.

Look for: return
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images.to(device))
            total += criterion(logits, labels.to(device)).item() * len(labels)
            targets.append(labels)
            predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return total / len(targets), (predictions == targets).float().mean().item(), predictions, targets
