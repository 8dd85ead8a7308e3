"""The model is not put in evaluation mode, so dropout disturbs the evaluation.

Begin evaluate with model.eval(): setting model.training reaches no layer within it.

Look for: _.training, body
"""


def evaluate(model, data_loader, loss_history):
    total_loss, correct, count = 0.0, 0, len(data_loader.dataset)
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device)).cpu()
            total_loss += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
    average_loss, accuracy = total_loss / count, correct / count
    loss_history.append(average_loss)
    print(f"test loss {average_loss:.4f}, accuracy {100 * accuracy:.2f} %")
