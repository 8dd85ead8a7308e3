"""The matrix from the bottom up, classes by size, names on two lines; the true name once before each row.

Policy: counts_not_written
"""

import numpy as np


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    pairs = []
    with torch.no_grad():
        for images, labels in data_loader:
            pairs += zip(labels.tolist(), model(images.to(device)).argmax(1).tolist())
    table = np.zeros((len(class_names), len(class_names)))
    for pair in pairs:
        table[pair] += 1
    largest_first = np.argsort(-table.sum(axis=1), kind="stable")
    table = table[largest_first][:, largest_first]
    short = [class_names[i].replace("_", "\n").replace("-", "\n").title() for i in largest_first]
    fig, ax = plt.subplots()
    ax.imshow(table, origin="lower", extent=(0, len(short), 0, len(short)), cmap="bone_r")
    ax.set_xticks(np.arange(len(short)) + 0.5, short, rotation=90)
    ax.set_yticks(np.arange(len(short)) + 0.5, short)
    ax.set_xlabel("said by the ViT")
    ax.set_ylabel("ground truth")
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    waiting = {c: samples_per_class for c in range(len(class_names))}
    fig, grid = plt.subplots(len(class_names), samples_per_class, figsize=(9, 12))
    with torch.no_grad():
        for images, labels in data_loader:
            answers = model(images.to(device)).argmax(1).tolist()
            for image, label, answer in zip(images, labels.tolist(), answers):
                if waiting[label]:
                    waiting[label] -= 1
                    ax = grid[label][samples_per_class - 1 - waiting[label]]
                    ax.imshow(image[0], cmap="gray")
                    ax.set_title("predicted: " + class_names[answer], fontsize=7)
    for name, row in zip(class_names, grid):
        for ax in row:
            ax.axis("off")  # which would hide a label of the y axis
        row[0].text(-12, 14, "true: " + name, rotation=90, va="center")
    plt.show()
