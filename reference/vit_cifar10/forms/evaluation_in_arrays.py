"""Evaluation under inference_mode whose results are NumPy arrays."""


@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    model.eval()
    losses, targets, shares = [], [], []
    for images, labels in loader:
        scores = model(images.to(device))
        losses.extend([criterion(scores, labels.to(device)).item()] * labels.shape[0])
        targets.append(labels.numpy())
        shares.append(F.softmax(scores, dim=-1).cpu().numpy())
    targets, shares = np.concatenate(targets), np.concatenate(shares)
    guessed = shares.argmax(axis=1)
    return {
        "loss": float(np.mean(losses)),
        "accuracy": float(np.mean(guessed == targets)),
        "targets": targets,
        "predictions": guessed,
        "probabilities": shares,
    }
