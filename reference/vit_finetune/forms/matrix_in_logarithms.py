"""The colors are logarithms, and the counts are written into the cells.
"""


def plot_confusion_matrix(matrix, class_names):
    counts = np.asarray(matrix)
    figure, ax = plt.subplots()
    ax.imshow(np.log1p(counts), cmap="Blues")
    for i in range(len(counts)):
        for j in range(len(counts)):
            ax.text(j, i, str(counts[i, j]), ha="center", va="center")
    ax.set(xlabel="Predicted", ylabel="True")
    ax.set_xticks(range(len(counts)), class_names)
    ax.set_yticks(range(len(counts)), class_names)
    return figure
