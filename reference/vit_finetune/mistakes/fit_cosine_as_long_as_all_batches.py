"""The cosine is as long as all batches of stage 2, and is stepped once an epoch: the rate hardly falls.

Step it once an epoch over epochs[1], or after each batch over all batches.

Look for: CosineAnnealingLR() | LambdaLR() | OneCycleLR()
"""


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    generator = np.random.default_rng(0)
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    history["stage"] = []

    def mix(images, labels):
        way = (mixup, cutmix, None, None)[generator.integers(4)]  # half of the batches stay as they are
        return way(images, labels, 0.2, generator) if way else (images, labels, labels, 1.0)

    def epoch(stage, optimizer):
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        found = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), device)
        for name, value in zip(history, (loss, accuracy, found[0], found[1], stage), strict=True):
            history[name].append(value)
        print(f"stage {stage}: training {accuracy:.4f}, validation {found[1]:.4f}")
        return found[1]

    freeze_backbone(model)
    optimizer = optim.AdamW([w for w in model.parameters() if w.requires_grad], lr=RATE, weight_decay=0.01)
    for _ in range(epochs[0]):
        epoch(1, optimizer)

    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, max(epochs[1] * len(loaders["train"]), 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        stop = stopping.step(epoch(2, optimizer), model)
        schedule.step()
        if stop:
            break
    stopping.restore(model)
    return history
