"""The loss_history gets the accuracy, or the number of correct predictions, in place of the average loss.

loss_history.append(average_loss); print the accuracy.

Look for: append()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device)).cpu()
            total += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            count += len(labels)
    loss_history.append(correct / count)
    print(f"loss {total / count:.4f}, accuracy {correct / count:.4f}")
