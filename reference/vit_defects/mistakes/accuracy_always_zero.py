"""None of the numbers that evaluate reports is the accuracy, and one of them is 0 for every data set,
although the model is right about many images of each.

Compare classes with labels, (scores.argmax(dim=1) == labels).sum(): the first result of torch.max are the
largest scores. Divide with /, because // gives whole numbers.

Look for: _ // _, max(), int() | round()
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
    accuracy = 100 * (correct // count)
    loss_history.append(total / count)
    print(f"loss {total / count:.4f}, accuracy {accuracy:.2f} %")
