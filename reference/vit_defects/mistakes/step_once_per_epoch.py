"""The optimizer takes a single step for a whole epoch of several batches.

optimizer.step() belongs in the loop, after loss.backward() and under no if: one step for every batch.

Look for: step()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        if number % 100 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
    optimizer.step()
