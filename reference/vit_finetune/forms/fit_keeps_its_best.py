"""fit counts and keeps the best weights of both stages by itself, and the history is a list of rows.
"""


import copy


def fit(model, loaders, epochs, device):
    model.to(device)
    train_loss, test_loss = nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss()
    generator = np.random.default_rng(1)
    best, state, rows = -1.0, None, {"epoch": [], "stage": [], "loss": [], "acc": [], "val_loss": [], "val_acc": []}
    for stage, (count, rate) in enumerate(zip(epochs, (RATE, RATE / 10)), start=1):
        if stage == 1:
            freeze_backbone(model)
        else:
            unfreeze(model)
        optimizer = optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate, momentum=0.9)
        scheduler = None
        if stage == 2 and count:
            scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=count)
        bad, top = 0, -1.0
        for number in range(count):
            loss, acc = train_one_epoch(
                model,
                loaders["train"],
                optimizer,
                train_loss,
                device,
                mix=lambda x, y: mixup(x, y, 0.4, generator),
            )
            val_loss, val_acc, _, _ = evaluate(model, loaders["validation"], test_loss, device)
            if scheduler:
                scheduler.step()
            for key, value in zip(rows, (number, stage, loss, acc, val_loss, val_acc)):
                rows[key].append(value)
            if val_acc > best:
                best, state = val_acc, copy.deepcopy(model.state_dict())
            if val_acc > top:
                top, bad = val_acc, 0
            else:
                bad += 1
            if stage == 2 and bad >= 5:
                break
    if state is not None:
        model.load_state_dict(state)
    return rows


def plot_history(history):
    steps = list(range(len(history["stage"])))
    border = history["stage"].index(2) - 0.5 if 2 in history["stage"] else None
    figure, (left, right) = plt.subplots(2, 1)
    left.plot(steps, history["loss"], label="train")
    left.plot(steps, history["val_loss"], label="val")
    right.plot(steps, [100 * a for a in history["acc"]], label="train")
    right.plot(steps, [100 * a for a in history["val_acc"]], label="val")
    left.set_title("Loss")
    right.set_title("Accuracy (%)")
    for axes in (left, right):
        axes.legend()
        if border is not None:
            axes.axvline(border)
    return figure
