"""Where a class has no accuracy, its bar is left out, but not its name: each bar behind it stands beside the
name of another class.

Leave out both or neither: a bar belongs at the place of its own name.

Look for: isnan() | isfinite() | dropna(), bar() | barh()
"""


def plot_per_class(names, accuracies):
    accuracies = np.asarray(accuracies, dtype=float)
    known = accuracies[~np.isnan(accuracies)]
    _, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(known)), known)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    plt.tight_layout()
    plt.show()
