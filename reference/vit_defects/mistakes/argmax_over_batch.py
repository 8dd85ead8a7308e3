"""The largest score is looked for along the batch instead of along the classes. Scores have the shape
(batch, classes): the predicted class of each image is the place of the largest score in its row.

Use scores.argmax(dim=1), which gives one answer per image.

Look for: argmax() | max() | topk() | argsort()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    counts = torch.zeros(len(class_names), len(class_names), dtype=torch.long)
    with torch.no_grad():
        for images, labels in data_loader:
            predicted = model(images.to(device)).argmax(dim=0).cpu()
            for true, answer in zip(labels.tolist(), predicted.tolist(), strict=False):
                counts[true, min(answer, len(class_names) - 1)] += 1
    counts = counts.numpy()
    plt.figure()
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
