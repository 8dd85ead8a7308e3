"""The training curves are measured after each epoch, as those of the validation are."""


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    steps = epochs * len(loaders["train"])
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps // 10, steps))
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    best, weights = -1.0, None
    for _ in range(epochs):
        train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        clean = evaluate(model, loaders["train"], criterion, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(clean["loss"])
        history["train_accuracy"].append(clean["accuracy"])
        history["validation_loss"].append(found["loss"])
        history["validation_accuracy"].append(found["accuracy"])
        if found["accuracy"] > best:
            best = found["accuracy"]
            weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(weights)
    return history
