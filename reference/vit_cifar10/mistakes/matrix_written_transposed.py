"""The counts are written into the cells with rows and columns exchanged, unlike the colors.

A text's first number is its column: text(column, row, count).

Look for: text() | annotate()
"""


def plot_confusion_matrix(matrix, class_names):
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            ax.text(row, column, int(count))
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.show()
