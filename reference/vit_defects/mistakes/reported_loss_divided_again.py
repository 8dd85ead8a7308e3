"""What train_epoch appends is the mean loss of a batch, divided once more by a number of images or batches.

loss_history.append(loss.item()): {F = torch.nn.functional}.cross_entropy gives the mean already.

Look for: _ / len() | _ / _.size(0) | _ / _.shape[0], append()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            average = loss.item() / images.size(0)
            print(f"batch {index}: loss {average:.4f}")
            loss_history.append(average)
