"""The class names are not on both axes, so nobody can tell which classes are confused.

Pass class_names as tick labels for both axes.

Look for: heatmap() | imshow() | matshow() | pcolormesh() | ConfusionMatrixDisplay() | from_predictions()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d")
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
