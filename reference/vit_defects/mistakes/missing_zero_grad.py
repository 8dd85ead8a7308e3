"""The gradients of earlier batches are not cleared between the steps: every step uses the sum of those of all
batches so far.

Call optimizer.zero_grad() in the loop, for every batch, before loss.backward().

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
