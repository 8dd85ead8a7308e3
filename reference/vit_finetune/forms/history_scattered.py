"""The epochs are points, and stage 2 is a shaded region."""


def plot_history(history):
    stages = np.array(history["stage"])
    numbers = np.arange(1, len(stages) + 1)
    _, axes = plt.subplots(2, 1, sharex=True)
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        for part in ("train", "validation"):
            ax.scatter(numbers, history[f"{part}_{what}"], label=part)
        ax.axvspan((stages == 1).sum() + 0.5, len(stages) + 0.5, alpha=0.1)
        ax.set(xlabel="epoch", ylabel=what)
        ax.legend()
    plt.show()
