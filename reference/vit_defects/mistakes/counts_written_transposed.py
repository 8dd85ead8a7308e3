"""The counts are written into the cells with rows and columns exchanged, while the colors are right: a text's
place is x, y, the column first.

ax.text(column, row, counts[row, column]): x runs along the columns, y along the rows.

Look for: text() | annotate()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=list(range(len(class_names))))
    _, axes = plt.subplots()
    axes.imshow(counts, cmap="Blues")
    for row in range(len(counts)):
        for column in range(len(counts)):
            axes.text(row, column, str(counts[row, column]), ha="center", va="center")
    axes.set_xticks(range(len(class_names)), class_names)
    axes.set_yticks(range(len(class_names)), class_names)
    axes.set_xlabel("Predicted class")
    axes.set_ylabel("True class")
    plt.show()
