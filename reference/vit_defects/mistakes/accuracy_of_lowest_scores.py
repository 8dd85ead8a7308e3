"""The class with the lowest score is taken as the prediction; it should be the one with the highest.

scores.argmax(dim=1).

Look for: argmin() | min()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images)
            loss = F.cross_entropy(scores, labels, reduction="sum")
            total += loss.item()
            correct += (scores.argmin(dim=1) == labels).sum().item()
            count += len(images)
    average = total / count
    loss_history.append(average)
    print(f"loss {average:.4f}, accuracy {correct / count:.4f} ({correct} of {count})")
    return average, correct / count
