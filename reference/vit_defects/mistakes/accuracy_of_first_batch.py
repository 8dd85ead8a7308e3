"""Only the first batch is counted in the accuracy. All images count.

Add up the correct predictions in the loop, and divide once after it.

Look for: break, argmax() | max()
"""


def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images)
            loss = F.cross_entropy(scores, labels, reduction="sum")
            total += loss.item()
            count += len(images)
            if count == len(images):
                correct, first = (scores.argmax(dim=1) == labels).sum().item(), len(images)
    average = total / count
    loss_history.append(average)
    print(f"loss {average:.4f}, accuracy {correct / first:.4f} ({correct} of {count})")
    return average, correct / first
