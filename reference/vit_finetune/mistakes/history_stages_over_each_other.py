"""The epochs of stage 2 are counted from 1 again: its curves lie over those of stage 1, not behind the line
that marks where it begins.

Count the epochs on: those of stage 2 begin at the number of epochs of stage 1, plus 1.

Look for: plot()
"""


def plot_history(history):
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    first = history["stage"].count(1)
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        for images in ("train", "validation"):
            values = history[f"{images}_{what}"]
            for stage, part in ((1, values[:first]), (2, values[first:])):
                ax.plot(range(1, len(part) + 1), part, marker="o", label=f"{images}, stage {stage}")
        ax.axvline(first + 0.5, color="gray", linestyle=":", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    plt.show()
