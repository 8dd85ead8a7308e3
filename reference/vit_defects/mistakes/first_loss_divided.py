"""The losses since the last report are added up and divided by 100, and the first report comes after one
batch: the first number of the curve is a hundredth of a loss.

loss_history.append(loss.item()): the loss of that batch, without a sum.

Look for: _ / 100, _ / _, append()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    running = 0.0
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        running += loss.item()
        if index % 100 == 0:
            print(f"batch {index}: loss {running / 100:.4f}")
            loss_history.append(running / 100)
            running = 0.0
