"""The bars do not carry the names of the classes."""


def plot_per_class(names, accuracies):
    _, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(names)), np.nan_to_num(np.asarray(accuracies, dtype=float)))
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    plt.tight_layout()
    plt.show()
