"""The softmax within the loss runs over the images of the batch instead of over the classes. The model learns
which image of a batch shows a class, not which class an image shows.

Use {F = torch.nn.functional}.cross_entropy, or log_softmax(dim=1).

Look for: log_softmax(dim=0) | softmax(dim=0), log_softmax() | softmax()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(images)
        loss = F.nll_loss(scores.log_softmax(dim=0), labels)
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
