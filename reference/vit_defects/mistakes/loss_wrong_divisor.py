"""The average loss is divided by the wrong number: means of batches have to be divided by the number of
batches, sums over images by the number of images.

Sum up {F = torch.nn.functional}.cross_entropy(..., reduction='sum') and divide by len(data_loader.dataset).

Look for: _ / len()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss, correct, count = 0.0, 0, len(data_loader.dataset)
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device)).cpu()
            total_loss += F.cross_entropy(scores, labels).item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
    average_loss, accuracy = total_loss / count, correct / count
    loss_history.append(average_loss)
    print(f"test loss {average_loss:.4f}, accuracy {100 * accuracy:.2f} %")
