"""The model is measured once before it is trained."""


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    steps = epochs * len(loaders["train"])
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps // 10, steps))
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    best, weights = -1.0, None
    start = evaluate(model, loaders["validation"], criterion, device)
    print(f"before training: {start['accuracy']:.3f}")
    for _ in range(epochs):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(loss)
        history["train_accuracy"].append(accuracy)
        history["validation_loss"].append(found["loss"])
        history["validation_accuracy"].append(found["accuracy"])
        if found["accuracy"] > best:
            best = found["accuracy"]
            weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(weights)
    return history
