"""Nothing is appended to loss_history.

loss_history.append(average_loss), as a number.

Look for: print()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images)
            total += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            count += len(images)
    print(f"loss {total / count:.4f}, accuracy {correct / count:.4f}")
