"""The training accuracy of a batch comes from a second pass of the model under no_grad, in training mode."""

EVERY = 100


def score(network, pixels, truth):
    with torch.no_grad():
        hits = network(pixels).max(dim=-1).indices.eq(truth)
    return hits.double().mean().item()


def train_epoch(model, optimizer, data_loader, loss_history):
    criterion, number = nn.CrossEntropyLoss(), -1
    model.train(True)
    for pair in data_loader:
        number += 1
        pixels, truth = (part.to(device, non_blocking=True) for part in pair)
        for weight in model.parameters():
            weight.grad = None
        value = criterion(model(pixels), truth)
        value.backward()
        optimizer.step()
        accurate = score(model, pixels, truth)
        if not number % EVERY:
            loss_history += [float(value)]
            print("step", number, "cross-entropy", round(float(value), 4), "accuracy", round(accurate, 3))


def evaluate(model, data_loader, loss_history):
    model.train(False)
    penalties, verdicts = [], []
    for pixels, truth in data_loader:
        with torch.inference_mode():
            guesses = model(pixels.to(device)).cpu()
            penalties.extend(nn.functional.cross_entropy(guesses, truth, reduction="none").tolist())
            verdicts.extend((guesses.max(dim=-1).indices == truth).tolist())
    loss_history += [sum(penalties) / len(penalties)]
    share = sum(verdicts) / len(verdicts)
    print(f"loss per image {loss_history[-1]:.4f}, {sum(verdicts)} of {len(verdicts)} right ({share:.1%})")
