"""The second confusion matrix still counts the images of the first: what is collected is kept from one call
to the next.

Begin with empty lists, or zeros, in the function itself; a default argument or a global is made only once.

Look for: extend(), append(), confusion_matrix()
"""

kept = []


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    kept.extend(zip(labels.tolist(), predicted.tolist(), strict=True))
    counts = confusion_matrix(*zip(*kept, strict=True), labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
