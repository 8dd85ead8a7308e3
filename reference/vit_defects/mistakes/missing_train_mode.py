"""The model is not put in training mode, so dropout never acts after the first call of evaluate.

Begin train_epoch with model.train(): setting model.training reaches no layer within it.

Look for: _.training, body
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            loss_history.append(loss.item())
