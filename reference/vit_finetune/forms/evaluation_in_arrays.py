"""Targets and predictions are NumPy arrays; the loss of all scores at once.
"""


def evaluate(model, loader, criterion, device):
    model.eval()
    scores, targets = [], []
    with torch.no_grad():
        for images, labels in loader:
            scores.append(model(images.to(device)).cpu())
            targets.append(labels)
    scores, targets = torch.cat(scores), torch.cat(targets)
    predictions = scores.argmax(dim=1)
    accuracy = np.mean(predictions.numpy() == targets.numpy())
    return float(criterion(scores, targets)), accuracy, targets.numpy(), predictions.numpy()
