"""The best weights are saved to memory and loaded again."""


import io


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion, kept, best = nn.CrossEntropyLoss(), io.BytesIO(), None
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    steps = max(1, epochs * len(loaders["train"]))
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, 0, steps))
    history = {name: [] for name in ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")}
    for _ in range(epochs):
        trained = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        for name, value in zip(history, (*trained, found["loss"], found["accuracy"]), strict=True):
            history[name].append(value)
        if best is None or found["accuracy"] > best:
            best, kept = found["accuracy"], io.BytesIO()
            torch.save(model.state_dict(), kept)
    kept.seek(0)
    model.load_state_dict(torch.load(kept, weights_only=True))
    return history
