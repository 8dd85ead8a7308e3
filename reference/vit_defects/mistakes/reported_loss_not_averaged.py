"""What is appended to loss_history is the sum of the losses so far, which only grows: divide it by the
number of batches, or append the loss of the batch.

loss_history.append(loss.item()).

Look for: append()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    total = 0.0
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if number % 100 == 0:
            print(f"batch {number}: loss {total:.4f}")
            loss_history.append(total)
