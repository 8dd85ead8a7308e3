"""Rows are predictions, shares of rows as precision, empty cells masked; a subfigure per predicted class.

Policy: examples_by_prediction
Policy: counts_not_written
"""

import numpy as np


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    side = len(class_names)
    counts = np.zeros((side, side))
    with torch.no_grad():
        for images, labels in data_loader:
            np.add.at(counts, (model(images.to(device)).argmax(1).cpu().numpy(), labels.numpy()), 1)
    precision = np.round(100 * counts / counts.sum(axis=1, keepdims=True))
    fig, ax = plt.subplots()
    mesh = ax.pcolor(np.ma.masked_equal(precision, 0), edgecolors="k")
    fig.colorbar(mesh, label="percent of a row")
    plt.xticks(np.arange(side) + 0.5, class_names, rotation=90)
    plt.yticks(np.arange(side) + 0.5, class_names)
    ax.set_title("Precision: what each predicted class consists of")
    ax.set_xlabel("Actual class")
    ax.set_ylabel("Class according to the model's prediction")
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    by_answer = {c: [] for c in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            for image, label, answer in zip(images, labels, model(images.to(device)).argmax(1)):
                by_answer[answer.item()].append((image, label.item()))
    fig = plt.figure(figsize=(12, 12))
    halves = fig.subfigures(1, 2)
    for half, classes in zip(halves, (range(0, 3), range(3, 6))):
        for part, c in zip(half.subfigures(3, 1), classes):
            part.suptitle(f"Prediction: {class_names[c]}")
            for ax, (image, label) in zip(part.subplots(1, samples_per_class), by_answer[c]):
                ax.matshow(image[0], cmap="gray")
                ax.set_axis_off()
                ax.set_title(f"Label: {class_names[label]}", fontsize=6)
    plt.show()
