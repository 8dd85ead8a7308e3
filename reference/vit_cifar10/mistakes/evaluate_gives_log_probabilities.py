"""'probabilities' are logarithms of probabilities.

softmax, not log_softmax.

Look for: log_softmax()
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, scores = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            batch = model(images.to(device))
            total += criterion(batch, labels.to(device)).item() * len(labels)
            targets.append(labels)
            scores.append(batch.cpu())
    targets, probabilities = torch.cat(targets), torch.cat(scores).log_softmax(dim=1)
    predictions = probabilities.argmax(dim=1)
    return {
        "loss": total / len(targets),
        "accuracy": (predictions == targets).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }
