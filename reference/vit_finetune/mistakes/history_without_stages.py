"""Nothing marks where stage 2 begins.

ax.axvline draws a line.
"""


def plot_history(history):
    epochs = range(1, len(history["stage"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        ax.plot(epochs, history[f"train_{what}"], marker="o", label="training (mixed images)")
        ax.plot(epochs, history[f"validation_{what}"], marker="o", label="validation")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    plt.show()
