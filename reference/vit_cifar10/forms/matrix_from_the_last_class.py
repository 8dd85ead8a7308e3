"""A confusion matrix whose rows stand from the last class to the first, each beside its name."""


def plot_confusion_matrix(matrix, class_names):
    flipped, names = np.asarray(matrix)[::-1], list(class_names)[::-1]
    fig, ax = plt.subplots(figsize=(7, 7))
    ax.matshow(flipped, cmap="Purples")
    ax.set(
        xticks=range(len(names)), xticklabels=class_names, yticks=range(len(names)), yticklabels=names,
        xlabel="prediction", ylabel="truth",
    )
    for (row, column), count in np.ndenumerate(flipped):
        ax.annotate(f"{count:.0f}", (column, row), ha="center")
    return fig
