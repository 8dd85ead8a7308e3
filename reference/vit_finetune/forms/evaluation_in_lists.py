"""Targets and predictions are lists; gradients are off by inference_mode.
"""


@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    model.eval()
    losses, targets, predictions = [], [], []
    for images, labels in loader:
        scores = model(images.to(device))
        losses += [criterion(scores, labels.to(device)).item()] * len(labels)
        targets += labels.tolist()
        predictions += scores.argmax(dim=-1).tolist()
    hits = sum(a == b for a, b in zip(targets, predictions))
    return sum(losses) / len(losses), hits / len(targets), targets, predictions
