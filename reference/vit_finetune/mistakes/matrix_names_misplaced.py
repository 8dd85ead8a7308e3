"""The names of the classes stand beside rows or columns of other classes.

Row i and column i belong to class_names[i]: hand the names over in their order.

Look for: _[::-1] | sorted() | reversed(), yticks() | set_yticks() | set_yticklabels()
"""


def plot_confusion_matrix(matrix, class_names):
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            ax.text(column, row, int(count), ha="center", va="center")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names[::-1])
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.tight_layout()
    plt.show()
