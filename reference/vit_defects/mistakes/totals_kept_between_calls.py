"""The totals go on from one call of evaluate to the next: what is reported is not of this data set alone, but
of all that were evaluated so far.

Set the sums and counts to 0 at the start of evaluate, as variables of the function.

Look for: body
"""

totals = {"loss": 0.0, "correct": 0, "count": 0}


def evaluate(model, data_loader, loss_history):
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device)).cpu()
            totals["loss"] += F.cross_entropy(scores, labels, reduction="sum").item()
            totals["correct"] += (scores.argmax(dim=1) == labels).sum().item()
            totals["count"] += len(labels)
    loss_history.append(totals["loss"] / totals["count"])
    print(f"loss {loss_history[-1]:.4f}, accuracy {totals['correct'] / totals['count']:.4f}")
