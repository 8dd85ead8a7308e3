"""The best weights by copy.deepcopy, a different optimizer for each model, a history as a list of rows."""


import copy


def fit(model, loaders, epochs, device):
    model = model.to(device)
    loss_function = nn.CrossEntropyLoss()
    if isinstance(model, VisionTransformer):
        optimizer = optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    else:
        optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    total = epochs * len(loaders["train"])
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda s: warmup_cosine(s, total // 20, total))
    best_state, best_accuracy, history = None, float("-inf"), []
    for epoch in range(1, epochs + 1):
        train_loss, train_accuracy = train_epoch(
            model, loaders["train"], loss_function, optimizer, schedule, device
        )
        validation = evaluate(model, loaders["validation"], loss_function, device)
        history.append((epoch, train_loss, train_accuracy, validation["loss"], validation["accuracy"]))
        if validation["accuracy"] > best_accuracy:
            best_accuracy = validation["accuracy"]
            best_state = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    return history


def plot_learning_curves(history):
    epochs, train_loss, train_accuracy, loss, accuracy = zip(*history, strict=True)
    fig, (left, right) = plt.subplots(1, 2)
    left.plot(epochs, train_loss, label="train")
    left.plot(epochs, loss, label="val")
    right.plot(epochs, [100 * a for a in train_accuracy], label="train")
    right.plot(epochs, [100 * a for a in accuracy], label="val")
    left.set_title("Loss")
    right.set_title("Accuracy (%)")
    for axes in (left, right):
        axes.set_xlabel("Epoch")
        axes.legend()
    return fig
