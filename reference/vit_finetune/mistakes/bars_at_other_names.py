"""The bars are sorted by their length, and the names are not: accuracies stand beside other classes' names.

Sort names and accuracies by one order, or neither.

Look for: argsort() | sort() | sorted() | sort_values() | reversed(), bar() | barh()
"""


def plot_per_class(names, accuracies):
    _, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(names)), sorted(np.nan_to_num(np.asarray(accuracies, dtype=float)), reverse=True))
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    plt.tight_layout()
    plt.show()
