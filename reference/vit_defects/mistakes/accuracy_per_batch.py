"""The number of correct predictions is divided by the number of batches.

Divide by len(data_loader.dataset), the number of images.

Look for: _ / len()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss, correct, count = 0.0, 0, len(data_loader.dataset)
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device)).cpu()
            total_loss += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
    average_loss, accuracy = total_loss / count, correct / len(data_loader)
    loss_history.append(average_loss)
    print(f"test loss {average_loss:.4f}, accuracy {100 * accuracy:.2f} %")
