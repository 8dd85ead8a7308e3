"""Only the epochs of stage 2 are drawn; both stages belong in one picture."""


def plot_history(history):
    epochs = range(1, len(history["stage"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        first = history["stage"].count(1)
        ax.plot(epochs[first:], history[f"train_{what}"][first:], marker="o", label="training")
        ax.plot(epochs[first:], history[f"validation_{what}"][first:], marker="o", label="validation")
        ax.axvline(history["stage"].count(1) + 0.5, color="gray", linestyle=":", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    plt.show()
