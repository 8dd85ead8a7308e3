"""The loss is nll_loss of scores that are not logarithms of probabilities.

Use {F = torch.nn.functional}.cross_entropy, which applies log_softmax first.

Look for: nll_loss() | NLLLoss()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images)
            loss = F.nll_loss(scores, labels, reduction="sum")
            total += loss.item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            count += len(images)
    average = total / count
    loss_history.append(average)
    print(f"loss {average:.4f}, accuracy {correct / count:.4f} ({correct} of {count})")
    return average, correct / count
