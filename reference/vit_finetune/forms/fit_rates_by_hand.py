"""The rate of stage 2 is set by hand before each epoch; head and backbone are groups.
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
    head = list(parts(model)[0].parameters())
    rest = [p for p in model.parameters() if all(p is not each for each in head)]
    optimizer = optim.AdamW([{"params": rest}, {"params": head, "weight_decay": 0.0}], lr=RATE / 10)
    stopping = EarlyStopping(PATIENCE)
    for number in range(epochs[1]):
        for group in optimizer.param_groups:
            group["lr"] = RATE / 20 * (1 + math.cos(math.pi * number / epochs[1]))
        stop = stopping.step(epoch(2, optimizer), model)
        if stop:
            break
    stopping.restore(model)
    return history
