"""The model is never called: no image from the loader is handed to it, so whatever the matrix shows, it is
not what the model predicts.

Call model(images) for every batch and take the class with the highest score: .argmax(dim=1).

Look for: confusion_matrix(), body
"""


def plot_confusion_matrix(model, data_loader, class_names):
    true, predicted = [], []
    for _, labels in data_loader:
        true += labels.tolist()
        predicted += torch.randint(len(class_names), labels.shape).tolist()
    counts = confusion_matrix(true, predicted, labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
