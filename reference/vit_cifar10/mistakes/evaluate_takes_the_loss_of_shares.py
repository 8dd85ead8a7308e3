"""The criterion gets probabilities, and takes a softmax of them once more; it should get the model's scores.

Look for: softmax()
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, scores = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            batch = model(images.to(device)).softmax(dim=1)
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
