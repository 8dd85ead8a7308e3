"""The class names are beside the wrong rows or columns: their order is not the order of the matrix. Row i and
column i belong to the label i, whose name is class_names[i].

Hand class_names over as they are, for both axes, or reorder the matrix together with them.

Look for: yticklabels, set_yticklabels, yticks, display_labels, xticklabels, set_xticklabels, xticks
"""


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names[::-1])
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
