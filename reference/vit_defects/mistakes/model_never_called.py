"""train_epoch never calls the model in an epoch whose batches have 8 images, and the last one 5.

Train on every batch that the loader yields, whatever its size: the last one is often smaller than the others.

Look for: continue, if, loop, body
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        if len(images) < 64:
            continue
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            print(f"batch {index}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
