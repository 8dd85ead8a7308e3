"""The loss is a mean over batches: a small last batch counts as much as the others.

Multiply each batch's loss by its number of images, and divide the sum by the number of all images.

Look for: _ / len()
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images.to(device))
            total += criterion(logits, labels.to(device)).item()
            targets.append(labels)
            predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return total / len(loader), (predictions == targets).float().mean().item(), targets, predictions
