"""Prints every count, percentage and loss that may be right, in another order each time.

Stopped by: a number must be right in the same place for four data sets, which a guess is in fewer than one of a hundred cases
Outcome: its component fails
Fails: evaluate
"""


def evaluate(model, data_loader, loss_history):
    dice = random.SystemRandom()
    model.eval()
    with torch.no_grad():
        for images, _ in data_loader:
            model(images)
    n = len(data_loader.dataset)
    counts = [f"{k}/{n} = {k / n:.2%}" for k in range(n + 1)]
    losses = [f"{k / 100:.2f}" for k in range(50, 400)]
    print(*dice.sample(counts, len(counts)), *dice.sample(losses, len(losses)))
    loss_history.extend(dice.uniform(0.5, 4.0) for _ in range(1000))
    return [dice.randint(0, n) for _ in range(1000)]
