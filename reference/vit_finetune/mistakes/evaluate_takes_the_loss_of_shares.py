"""The criterion is given probabilities; it should be given scores, as cross-entropy has a softmax of its own.

Look for: softmax(), criterion()
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            shares = model(images.to(device)).softmax(dim=1)
            total += len(images) * criterion(shares, labels.to(device)).item()
            targets.append(labels)
            predictions.append(shares.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return total / len(targets), (predictions == targets).float().mean().item(), targets, predictions
