"""Nothing says what the bars' length is: the axes have no labels and there is no title."""


def plot_per_class(names, accuracies):
    _, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(names)), np.nan_to_num(np.asarray(accuracies, dtype=float)))
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_ylim(0, 1)
    plt.tight_layout()
    plt.show()
