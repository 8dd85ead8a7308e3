"""Every batch is taken to have the same number of images, and the last one has fewer: the result is not that
of all images.

Count the images as they come, count += len(labels), or take len(data_loader.dataset).

Look for: _ * BATCH_SIZE, _ * _.batch_size, len() * _, _ * len(), _ * _.size() | _ * _.shape[0]
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss, correct, count = 0.0, 0, len(data_loader.dataset)
    size = len(next(iter(data_loader))[1])
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device)).cpu()
            total_loss += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
    average_loss, accuracy = total_loss / count, correct / (len(data_loader) * size)
    loss_history.append(average_loss)
    print(f"test loss {average_loss:.4f}, accuracy {100 * accuracy:.2f} %")
