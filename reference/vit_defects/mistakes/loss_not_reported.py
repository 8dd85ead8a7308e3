"""No loss is appended, printed or returned: nobody sees whether training works.

Every 100 batches: loss_history.append(loss.item()), and print it.

Look for: loop_end
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
