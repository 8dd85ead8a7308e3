"""The axes do not carry the names of the classes.

Look for: imshow() | heatmap() | matshow()
"""


def plot_confusion_matrix(matrix, class_names):
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            ax.text(column, row, int(count), ha="center", va="center")
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.tight_layout()
    plt.show()
