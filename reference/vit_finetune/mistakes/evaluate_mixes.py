"""Images are mixed in evaluation: what is measured are images that nobody asked about.

Evaluate images as the loader gives them.
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            images = 0.9 * images + 0.1 * images.flip(0)
            logits = model(images.to(device))
            total += criterion(logits, labels.to(device)).item() * len(labels)
            targets.append(labels)
            predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return total / len(targets), (predictions == targets).float().mean().item(), targets, predictions
