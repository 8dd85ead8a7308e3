"""'probabilities' are the model's scores; they should be their softmax.

Look for: probabilities
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
    targets, probabilities = torch.cat(targets), torch.cat(scores)
    predictions = probabilities.argmax(dim=1)
    return {
        "loss": total / len(targets),
        "accuracy": (predictions == targets).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }
