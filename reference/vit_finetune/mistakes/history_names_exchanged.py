"""The curve of validation is called training, and that of training validation.

label= of each curve says whose values it has.

Look for: plot(label="training") | plot(label="train")
"""


def plot_history(history):
    epochs = range(1, len(history["stage"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        ax.plot(epochs, history[f"train_{what}"], marker="o", label="validation")
        ax.plot(epochs, history[f"validation_{what}"], marker="o", label="training")
        ax.axvline(history["stage"].count(1) + 0.5, color="gray", linestyle=":", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    plt.show()
