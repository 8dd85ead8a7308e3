"""fit also measures the training images as they are, and validates before it trains and in the end.
"""


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion, generator = nn.CrossEntropyLoss(label_smoothing=0.1), np.random.default_rng(3)
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    history["stage"] = []

    def measure(part):
        loss, accuracy, _, _ = evaluate(model, loaders[part], nn.CrossEntropyLoss(), device)
        return loss, accuracy

    def epoch(stage, optimizer):
        mixed = train_one_epoch(
            model, loaders["train"], optimizer, criterion, device, lambda *batch: mixup(*batch, 0.2, generator)
        )
        training, validation = measure("train"), measure("validation")
        for name, value in zip(history, (*training, *validation, stage)):
            history[name].append(value)
        print(f"mixed {mixed[1]:.3f}, training {training[1]:.3f}, validation {validation[1]:.3f}")
        return validation[1]

    print("before:", measure("validation"))
    freeze_backbone(model)
    optimizer = optim.AdamW([w for w in model.parameters() if w.requires_grad], lr=RATE)
    for _ in range(epochs[0]):
        epoch(1, optimizer)
    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        stop = stopping.step(epoch(2, optimizer), model)
        schedule.step()
        if stop:
            break
    stopping.restore(model)
    print("in the end:", measure("validation"), measure("train"))
    return history
