"""The training accuracy of a batch comes from a second pass of the model under no_grad, in training mode."""


@torch.no_grad()
def accuracy_of(model, images, labels):
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        accuracy = accuracy_of(model, images, labels)
        if index % 100 == 0:
            print(f"batch {index}: loss {loss.item():.4f}, accuracy {accuracy:.2%}")
            loss_history.append(loss.item())
