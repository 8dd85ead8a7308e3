"""The matrix is shown transposed: the true classes should be its rows, or the axes should say otherwise.

Look for: imshow() | heatmap() | matshow()
"""


def plot_confusion_matrix(matrix, class_names):
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(np.asarray(matrix).T, cmap="Blues")
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            ax.text(column, row, int(count), ha="center", va="center")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.tight_layout()
    plt.show()
