"""backward() runs twice for each batch, which doubles every gradient.

Call loss.backward() once.

Look for: retain_graph, backward()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(images)
        loss = F.cross_entropy(scores, labels)
        loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
