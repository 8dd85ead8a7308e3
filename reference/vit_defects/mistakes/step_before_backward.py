"""Each step uses the gradient of the batch before: optimizer.step() comes before loss.backward().

The order is zero_grad, forward, loss, backward, step.

Look for: step()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()
        if index % 100 == 0:
            loss_history.append(loss.item())
