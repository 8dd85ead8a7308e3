"""The loss is scaled by a different factor for every batch: some batches count more than others.

Take the mean over each batch, loss = {F = torch.nn.functional}.cross_entropy(scores, labels), and call
backward() on that.

Look for: cross_entropy() | criterion()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(images)
        loss = F.cross_entropy(scores, labels) / (number + 1)
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
