"""evaluate reports the same numbers for different data sets, on which the model does better and worse: they
are not computed from the scores and the labels.

Add up {F = torch.nn.functional}.cross_entropy(scores, labels, reduction="sum") and (scores.argmax(dim=1) ==
labels).sum() over the batches of data_loader.

Look for: print()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    with torch.no_grad():
        for images, _ in data_loader:
            model(images)
    loss, accuracy = 0.9134, 0.7083
    loss_history.append(loss)
    print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
    return loss, accuracy
