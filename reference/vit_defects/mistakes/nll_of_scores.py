"""The loss is nll_loss of scores that are not logarithms of probabilities: it can fall without end, whatever
the model says.

Use {F = torch.nn.functional}.cross_entropy, which applies log_softmax first.

Look for: nll_loss() | NLLLoss()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            loss_history.append(loss.item())
