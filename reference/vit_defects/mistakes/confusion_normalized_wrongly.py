"""The shares are of the wrong class: entry (i, j) is not divided by the sum of the class that the rows or the
title name. Entry (i, j) counts the images of class i that were taken for class j. A share of the true class i
is counts[i, j] / counts[i, :].sum(), so that every row adds up to 1.

Use counts / counts.sum(axis=1, keepdims=True): without keepdims, NumPy divides along the other axis.

Look for: normalize, _ / _.sum() | sum()
"""


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=list(range(len(class_names))))
    shares = counts / counts.sum(axis=1)
    plt.figure()
    sns.heatmap(shares, annot=True, fmt=".2f", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.show()
