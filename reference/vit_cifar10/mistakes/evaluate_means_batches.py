"""'loss' is the mean of the batches' means, which differs from the mean over images when the last batch is
smaller.

Look for: _ / len()
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, scores = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            batch = model(images.to(device))
            total += criterion(batch, labels.to(device)).item()
            targets.append(labels)
            scores.append(batch.cpu())
    targets, probabilities = torch.cat(targets), torch.cat(scores).softmax(dim=1)
    predictions = probabilities.argmax(dim=1)
    return {
        "loss": total / len(loader),
        "accuracy": (predictions == targets).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }
