"""When class_names comes in another order, the names on the axes stay in the usual one: they are written in
the code, or sorted. Row and column i belong to class_names[i].

Hand class_names over as it comes, for both axes.

Look for: sorted() | sort(), yticklabels, set_yticklabels, yticks, display_labels, xticklabels
"""


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=list(range(len(class_names))))
    names = sorted(class_names)
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=names, yticklabels=names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
