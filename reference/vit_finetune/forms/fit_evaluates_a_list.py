"""The validation batches are kept in a list, moved to the device once, and the training batches come from a generator.
"""


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    kept = [(images.to(device), labels.to(device)) for images, labels in loaders["validation"]]
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    history["stage"] = []

    def moved():
        for images, labels in loaders["train"]:
            yield images.to(device), labels.to(device)

    def epoch(stage, optimizer):
        loss, accuracy = train_one_epoch(model, moved(), optimizer, criterion, device)
        found = evaluate(model, kept, nn.CrossEntropyLoss(), device)
        for name, value in zip(history, (loss, accuracy, found[0], found[1], stage), strict=True):
            history[name].append(value)
        return found[1]

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
    return history
