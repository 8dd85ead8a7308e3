"""No gradient reaches the scores of the model: loss.backward() is missing, or the loss is cut off from the
scores.

Call loss.backward() for every batch, on a loss that was computed from the output of the model.

Look for: step()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.step()
        if index % 100 == 0:
            loss_history.append(loss.item())
