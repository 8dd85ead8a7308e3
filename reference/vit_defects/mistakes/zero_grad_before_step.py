"""The gradients are zero when the optimizer takes its steps: they are cleared between loss.backward() and
optimizer.step().

In this order for every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().

Look for: zero_grad()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.zero_grad(set_to_none=False)
        optimizer.step()
        if index % 100 == 0:
            loss_history.append(loss.item())
