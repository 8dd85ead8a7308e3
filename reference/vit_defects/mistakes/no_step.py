"""The optimizer takes no steps, so that the model never changes.

Call optimizer.step() once for every batch, after loss.backward().

Look for: backward()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        if index % 100 == 0:
            loss_history.append(loss.item())
