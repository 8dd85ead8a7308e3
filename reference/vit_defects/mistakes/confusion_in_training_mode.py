"""The model is put in training mode before it is run. Dropout then removes a random part of what the layers
compute, and the matrix shows a worse model than the one that was trained.

Begin plot_confusion_matrix with model.eval().

Look for: train()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    model.train()
    true, predicted = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            true += labels.tolist()
            predicted += model(images.to(device)).argmax(dim=1).tolist()
    counts = confusion_matrix(true, predicted, labels=list(range(len(class_names))))
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
