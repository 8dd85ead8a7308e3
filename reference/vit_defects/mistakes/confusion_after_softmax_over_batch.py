"""A softmax over the images of a batch (axis 0) comes before the argmax: it changes which class of an
image is the largest.

Leave the softmax out: the largest score, argmax(dim=1), is the predicted class as it is.

Look for: softmax() | Softmax()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    true, predicted = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            true += labels.tolist()
            predicted += model(images.to(device)).softmax(dim=0).argmax(dim=1).tolist()
    counts = confusion_matrix(true, predicted, labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
