"""A point for each class, on a thin line, in place of a bar."""


def plot_per_class(names, accuracies):
    shares = np.nan_to_num(np.asarray(accuracies, dtype=float))
    plt.vlines(range(len(names)), 0, shares, color="gray")
    plt.scatter(range(len(names)), shares)
    plt.xticks(range(len(names)), names, rotation=90)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.show()
