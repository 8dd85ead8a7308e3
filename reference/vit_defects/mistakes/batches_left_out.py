"""Some images of the loader are never learned from: no gradient reaches their scores, though it reaches those
of others.

Loop over the batches themselves, for images, labels in data_loader, and call loss.backward() for every one.

Look for: next(), break | continue | return, if, backward(), loop
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index in range(len(data_loader)):
        images, labels = next(iter(data_loader))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            print(f"batch {index}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
