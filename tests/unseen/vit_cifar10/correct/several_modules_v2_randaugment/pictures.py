"""The figures. Each function returns its figure and leaves it open."""

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
from scores import one_auc, roc_curve


def as_it_was(image, mean, std):
    mean = torch.as_tensor(mean, dtype=torch.float32)[:, None, None]
    std = torch.as_tensor(std, dtype=torch.float32)[:, None, None]
    return np.moveaxis((image.cpu() * std + mean).clip(0, 1).numpy(), 0, -1)


def plot_learning_curves(history):
    figure, axes = plt.subplots(ncols=2, figsize=(10, 4))
    for axis, name in zip(axes, ["loss", "accuracy"]):
        for part, values in (("training", [e[f"train_{name}"] for e in history]), ("validation", [e[name] for e in history])):
            axis.plot(range(1, len(history) + 1), values, label=part, marker="x")
        axis.set_xlabel("Epoch")
        axis.set_ylabel(name.capitalize())
        axis.legend()
    return figure


def plot_confusion_matrix(matrix, class_names):
    figure, axis = plt.subplots(figsize=(8, 7))
    sns.heatmap(
        np.asarray(matrix), annot=True, fmt="d", cmap="rocket_r", square=True, ax=axis,
        xticklabels=class_names, yticklabels=class_names,
    )  # fmt: skip
    axis.set_xlabel("predicted")
    axis.set_ylabel("true")
    figure.tight_layout()
    return figure


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    figure, axis = plt.subplots(figsize=(7, 6))
    for number, name in enumerate(class_names):
        positive = targets == number
        if positive.any() and not positive.all():
            fpr, tpr = roc_curve(positive, probabilities[:, number])
            axis.plot(fpr, tpr, label=f"{name}, area {one_auc(positive, probabilities[:, number]):.3f}")
    axis.set_xlabel("False positive rate")
    axis.set_ylabel("True positive rate")
    axis.legend(loc="lower right")
    return figure


def draw_attention(maps, images, labels, class_names, mean, std):
    """The drawing half of plot_attention."""
    figure = plt.figure(figsize=(6, 2.1 * len(images)), layout="constrained")
    rows = np.atleast_1d(figure.subfigures(len(images), 1))
    for row, heat, image, label in zip(rows, maps, images, labels):
        row.suptitle(class_names[int(label)], fontsize=9)
        original, mapped, overlay = row.subplots(1, 3)
        shown = as_it_was(image, mean, std)
        height, width = heat.shape
        original.imshow(shown)
        mapped.imshow(heat, cmap="jet")
        overlay.imshow(shown)
        overlay.pcolormesh(np.arange(width + 1) - 0.5, np.arange(height + 1) - 0.5, heat, cmap="jet", alpha=0.4)
        for axis in (original, mapped, overlay):
            axis.set_xticks([])
            axis.set_yticks([])
    return figure


def plot_top3(images, labels, probabilities, class_names, mean, std):
    probabilities = np.asarray(probabilities)
    figure, axes = plt.subplots(len(images), 2, figsize=(6, 1.8 * len(images)), squeeze=False)
    for (left, right), image, label, row in zip(axes, images, labels, probabilities):
        best = np.argsort(row)[::-1][:3]
        names = [class_names[c] for c in best]
        left.imshow(as_it_was(image, mean, std))
        left.set_title("true class: " + class_names[int(label)], fontsize=8)
        left.axis("off")
        right.bar(range(3), row[best], color=["tab:green" if c == int(label) else "tab:gray" for c in best])
        right.set_xticks(range(3), names, fontsize=7)
        right.set_ylim(0, 1.15)
        for x, value in enumerate(row[best]):
            right.text(x, value, f"{value:.1%}", ha="center", va="bottom", fontsize=7)
    figure.tight_layout()
    return figure
