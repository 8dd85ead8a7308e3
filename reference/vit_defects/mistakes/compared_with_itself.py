"""The labels, or the predictions, are compared with themselves, so nothing stands outside the diagonal.
The matrix should count the true labels against the predicted ones, and then the model's errors show.

Hand over both: confusion_matrix(true_labels, predicted_labels).

Look for: confusion_matrix() | from_predictions(), heatmap()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), labels.tolist(), labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
