"""The counts are written into the cells with rows and columns exchanged, while the colors are right.

ax.text(column, row, matrix[row, column]): x runs along the columns, y along the rows.

Look for: text() | annotate()
"""


def plot_confusion_matrix(matrix, class_names):
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            ax.text(row, column, int(count), ha="center", va="center")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.tight_layout()
    plt.show()
