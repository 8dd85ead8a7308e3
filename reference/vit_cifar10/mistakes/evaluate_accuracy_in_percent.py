"""'accuracy' is in percent; it should be from 0 to 1.

Look for: 100 * _ | _ * 100 | 100.0 * _ | _ * 100.0
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
    targets, probabilities = torch.cat(targets), torch.cat(scores).softmax(dim=1)
    predictions = probabilities.argmax(dim=1)
    return {
        "loss": total / len(targets),
        "accuracy": 100 * (predictions == targets).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }
