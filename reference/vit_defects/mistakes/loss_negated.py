"""The sign of the loss is wrong: each step makes the cross-entropy larger.

loss = {F = torch.nn.functional}.cross_entropy(scores, labels), without a minus.

Look for: -cross_entropy() | -criterion(), cross_entropy() | criterion()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(images)
        loss = -F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
