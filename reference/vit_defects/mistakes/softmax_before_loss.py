"""A softmax is applied to the scores before cross_entropy, which applies its own: with two of them the
gradients become very small.

Give the scores to {F = torch.nn.functional}.cross_entropy as they come from the model.

Look for: softmax() | Softmax()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)).softmax(dim=1), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            loss_history.append(loss.item())
