"""The optimizer that train_epoch gets takes no step: the weights of the model are changed by other means, as
by an optimizer that is made inside.

Use the optimizer that is passed: it holds the learning rate, and from batch to batch what it has learned.

Look for: Adam() | AdamW() | SGD() | RMSprop(), no_grad(), step()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    own = optim.AdamW(model.parameters(), lr=0.001)
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        own.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        own.step()
        if index % 100 == 0:
            loss_history.append(loss.item())
