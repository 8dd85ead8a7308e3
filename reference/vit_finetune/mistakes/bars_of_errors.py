"""The bars are as long as the share of wrong answers, 1 - accuracy, not as the accuracy.

Draw the accuracies as they are given.

Look for: 1 - _ | 1.0 - _ | 100 - _ | 100.0 - _, bar() | barh()
"""


def plot_per_class(names, accuracies):
    _, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(names)), np.nan_to_num(1 - np.asarray(accuracies, dtype=float)))
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    plt.tight_layout()
    plt.show()
