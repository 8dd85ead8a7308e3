"""The labels do not belong to the images that they are compared with: images or labels were put into
another order.

Take images and labels from the loader together, and leave their order alone.

Look for: roll() | randperm() | flip() | shuffle()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(images)
        loss = F.cross_entropy(scores, labels.roll(1))
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
