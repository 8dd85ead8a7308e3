"""The accuracy is in percent; it should be between 0 and 1.

Look for: 100 * _ | _ * 100 | 100.0 * _ | _ * 100.0
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
    return total / len(targets), 100 * (predictions == targets).float().mean().item(), targets, predictions
