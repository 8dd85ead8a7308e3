"""The loss_history holds tensors with their graph, which keeps everything that was computed for a batch in
memory.

Append loss.item(), which is a plain number, and take .item() away from where the history is read.

Look for: append()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            loss_history.append(loss)
