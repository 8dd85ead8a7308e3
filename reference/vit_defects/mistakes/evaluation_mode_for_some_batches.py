"""Some batches are trained on in training mode and others in evaluation mode, in which dropout is off.

What switches to model.eval() within the loop should switch back; or call model.train() for every batch.

Look for: eval(), train(), body
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            model.eval()
            with torch.no_grad():
                hits = (model(images.to(device)).argmax(dim=1).cpu() == labels).sum().item()
            print(f"batch {index}: loss {loss.item():.4f}, {hits} of {len(labels)} are right")
            loss_history.append(loss.item())
