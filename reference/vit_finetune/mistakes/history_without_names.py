"""Nothing says what the axes and the curves are."""


def plot_history(history):
    epochs = range(1, len(history["stage"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        ax.plot(epochs, history[f"train_{what}"], marker="o")
        ax.plot(epochs, history[f"validation_{what}"], marker="o")
        ax.axvline(history["stage"].count(1) + 0.5)
    plt.show()
