"""The gradients of earlier batches are never cleared: every step uses the sum of all gradients so far.

Call optimizer.zero_grad() for every batch, before loss.backward().

Look for: backward(), loop
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            loss_history.append(loss.item())
