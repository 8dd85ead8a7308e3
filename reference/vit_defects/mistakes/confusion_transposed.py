"""Rows and columns are exchanged: the rows show predicted classes. By the labels of the axes, or by
convention where there are none, they should show true classes.

Row i is the true class, counts[true, predicted]; scikit-learn's confusion_matrix takes the true labels first.

Look for: confusion_matrix() | from_predictions(), _[_, _] | _[_][_], bincount(), xlabel() | set_xlabel()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(predicted.tolist(), labels.tolist(), labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
