"""Gradients are switched off and not on again: whatever trains after evaluate fails, because no gradient is
recorded any more.

Use `with torch.no_grad():` around the loop, which ends by itself.

Look for: set_grad_enabled()
"""


def evaluate(model, data_loader, loss_history):
    torch.set_grad_enabled(False)
    model.eval()
    total, correct, count = 0.0, 0, 0
    for images, labels in data_loader:
        scores = model(images)
        total += F.cross_entropy(scores, labels, reduction="sum").item()
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(images)
    loss_history.append(total / count)
    print(f"loss {total / count:.4f}, accuracy {correct / count:.4f}")
