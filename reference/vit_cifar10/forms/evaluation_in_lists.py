"""Evaluation whose results are lists."""


def evaluate(model, loader, criterion, device):
    model.eval()
    loss_sum, targets, predictions, probabilities = 0.0, [], [], []
    with torch.no_grad():
        for images, labels in loader:
            output = model(images.to(device))
            loss_sum += criterion(output, labels.to(device)).item() * images.size(0)
            shares = torch.softmax(output, dim=1).cpu()
            targets += labels.tolist()
            predictions += shares.argmax(dim=1).tolist()
            probabilities += shares.tolist()
    right = sum(a == b for a, b in zip(targets, predictions, strict=True))
    return {
        "loss": loss_sum / len(targets),
        "accuracy": right / len(targets),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }
