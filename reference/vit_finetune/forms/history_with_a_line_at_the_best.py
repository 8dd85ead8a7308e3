"""Each stage has curves of its own, which are named for it, and an upright line stands at the best epoch."""


def plot_history(history):
    first = history["stage"].count(1)
    count = len(history["stage"])
    best = int(np.argmax(history["validation_accuracy"])) + 1
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        for images, named in (("train", "training"), ("validation", "validation")):
            values = history[f"{images}_{what}"]
            ax.plot(range(1, first + 1), values[:first], marker="o", label=f"{named}, stage 1 (head)")
            ax.plot(range(first + 1, count + 1), values[first:], marker="o", label=f"{named}, stage 2 (all)")
        ax.axvline(best, color="gray", linestyle=":", label="best epoch")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    plt.show()
