"""Gradients are switched off and not on again: whatever trains after evaluate fails.

Use with torch.no_grad(): around the loop, which ends by itself.

Look for: set_grad_enabled()
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    total, targets, scores = 0.0, [], []
    torch.set_grad_enabled(False)
    for images, labels in loader:
        batch = model(images.to(device))
        total += criterion(batch, labels.to(device)).item() * len(labels)
        targets.append(labels)
        scores.append(batch.detach().cpu())
    targets, probabilities = torch.cat(targets), torch.cat(scores).softmax(dim=1)
    predictions = probabilities.argmax(dim=1)
    return {
        "loss": total / len(targets),
        "accuracy": (predictions == targets).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }
