"""The matrix counts the last batch only.

Collect the predictions of all batches before the matrix is computed.

Look for: argmax() | max()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            true = labels.tolist()
            predicted = model(images.to(device)).argmax(dim=1).cpu()
    counts = confusion_matrix(true, predicted.tolist(), labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
