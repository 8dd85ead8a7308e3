"""nll_loss is given probabilities, but it wants their logarithms: without the logarithm, confident mistakes
are hardly punished and learning stalls.

Use {F = torch.nn.functional}.cross_entropy with the scores, or {F = torch.nn.functional}.nll_loss with
log_softmax.

Look for: nll_loss() | NLLLoss()
"""


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for number, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(images)
        loss = F.nll_loss(scores.softmax(dim=1), labels)
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
