"""Each stage's curves are lines of their own, in colors of their own.
"""


def plot_history(history):
    first = history["stage"].count(1)
    pieces = {"stage 1": range(first), "stage 2": range(first, len(history["stage"]))}
    for what in ("loss", "accuracy"):
        plt.figure()
        for name, numbers in pieces.items():
            for kind, style in (("train", "--"), ("validation", "-")):
                values = [history[f"{kind}_{what}"][n] for n in numbers]
                plt.plot([n + 1 for n in numbers], values, style, label=f"{name}, {kind}")
        plt.xlabel("Epoch")
        plt.ylabel(what)
        plt.legend()
    plt.show()
