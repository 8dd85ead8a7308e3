"""The training loss is only printed, and the average loss of the evaluation is the mean of the batches' means.

Policy: loss_not_kept
Policy: average_of_batch_means
"""

cross_entropy = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"batch {number} of {len(data_loader)}: loss {loss.item():.4f}")


def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device))
            total += cross_entropy(scores, labels.to(device)).item()
            correct += (scores.argmax(dim=1).cpu() == labels).sum().item()
    loss_history.append(total / len(data_loader))
    print(f"loss {loss_history[-1]:.4f}, {correct} of {len(data_loader.dataset)} images are right")
