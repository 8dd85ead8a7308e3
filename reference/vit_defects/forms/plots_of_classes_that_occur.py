"""scikit-learn counts without being given the classes, so that one without images has no row.

Policy: row_of_absent_class_missing
"""

from sklearn.metrics import confusion_matrix


@torch.no_grad()
def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    true, predicted = [], []
    for images, labels in data_loader:
        predicted += model(images.to(device)).argmax(dim=1).tolist()
        true += labels.tolist()
    counts = confusion_matrix(true, predicted)
    plt.figure(figsize=(6, 5))
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    plt.show()
