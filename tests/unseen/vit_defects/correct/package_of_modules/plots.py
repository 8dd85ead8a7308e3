"""Figures. Every function shows its figure and also writes it to a file for the report."""

import matplotlib.pyplot as plt
import seaborn as sns
import torch
from sklearn.metrics import confusion_matrix

import settings
from loops import predictions


def finish(fig, file_name):
    fig.savefig(file_name, dpi=150, bbox_inches="tight")
    plt.show()


def draw_image(ax, image):
    """Undoes the normalization; one channel is gray, three are colors."""
    image = (image * settings.STD + settings.MEAN).clamp(0, 1)
    if image.shape[0] == 3:
        ax.imshow(image.permute(1, 2, 0))
    else:
        ax.imshow(image[0], cmap="gray", vmin=0, vmax=1)
    ax.set_xticks([])
    ax.set_yticks([])


def show_samples(dataset, title, per_class=6):
    fig, axes = plt.subplots(len(dataset.classes), per_class, figsize=(1.4 * per_class, 9), squeeze=False)
    for label, name in enumerate(dataset.classes):
        indices = [i for i, target in enumerate(dataset.targets) if target == label][:per_class]
        for ax in axes[label, len(indices) :]:
            ax.set_axis_off()
        for ax, index in zip(axes[label], indices, strict=False):
            draw_image(ax, dataset[index][0])
        axes[label, 0].set_ylabel(name, fontsize=8)
    fig.suptitle(title)
    finish(fig, f"{title.lower().replace(' ', '_')}.png")


def plot_history(train_loss_history, test_loss_history):
    fig, ax = plt.subplots(figsize=(7, 4))
    ax.plot(train_loss_history, label="training loss (every 100 batches)")
    ax.plot(test_loss_history, label="test loss (every epoch)")
    ax.set(xlabel="entry", ylabel="cross-entropy")
    ax.legend()
    finish(fig, "history.png")


def plot_confusion_matrix(model, data_loader, class_names):
    """Rows are true classes, columns predicted ones."""
    true, predicted = [], []
    for _, labels, scores in predictions(model, data_loader):
        true.append(labels)
        predicted.append(scores.argmax(dim=1))
    counts = confusion_matrix(torch.cat(true), torch.cat(predicted), labels=list(range(len(class_names))))
    fig, ax = plt.subplots(figsize=(8, 7), layout="constrained")
    sns.heatmap(
        counts,
        annot=True,
        fmt="d",
        cmap="flare",
        cbar=False,
        square=True,
        xticklabels=class_names,
        yticklabels=class_names,
        ax=ax,
    )
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.xaxis.set_label_position("top")
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", rotation=30)
    finish(fig, "confusion_matrix.png")


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """One row for each true class."""
    rows = {label: [] for label in range(len(class_names))}
    for images, labels, scores in predictions(model, data_loader):
        for image, label, answer in zip(images, labels.tolist(), scores.argmax(dim=1).tolist(), strict=True):
            if len(rows[label]) < samples_per_class:
                rows[label].append((image, answer))

    fig = plt.figure(figsize=(2.3 * samples_per_class, 2.6 * len(class_names)))
    grid = fig.add_gridspec(len(class_names), samples_per_class, hspace=0.5)
    for label, row in rows.items():
        for column, (image, answer) in enumerate(row):
            ax = fig.add_subplot(grid[label, column])
            draw_image(ax, image)
            right = answer == label
            for spine in ax.spines.values():
                spine.set(color="green" if right else "red", linewidth=3)
            ax.set_title(f"true: {class_names[label]}\npredicted: {class_names[answer]}", fontsize=8)
    finish(fig, "predictions.png")
