"""Nothing says what the axes and the curves are."""


def plot_learning_curves(history):
    epochs = range(1, len(history["train_loss"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        ax.plot(epochs, history[f"train_{what}"])
        ax.plot(epochs, history[f"validation_{what}"])
    plt.show()
