"""Displays: `from_...` builds one, `plot` draws it, as in sklearn's `...Display` classes."""

import math

import matplotlib.pyplot as plt
import numpy as np
import torch
from scores import area_under_curve, binary_curve


def attention_map(model, image):
    state = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            device = next(model.parameters()).device
            weights = model.attention(torch.unsqueeze(image, 0).to(device))[0].cpu().numpy()
    finally:
        for module, mode in state:
            module.training = mode
    mean_weights = weights.mean(axis=0)
    n_tokens = mean_weights.shape[0]
    is_square = math.isqrt(n_tokens) ** 2 == n_tokens
    importances = mean_weights.mean(axis=0) if is_square else mean_weights[0, 1:]
    n_side = math.isqrt(importances.shape[0])
    grid = importances.reshape(n_side, n_side)
    if grid.max() > 0:
        grid = grid / grid.max()
    # every pixel asks for the value of its patch
    rows, columns = (np.arange(size) // (size // n_side) for size in image.shape[1:])
    return grid[np.ix_(rows, columns)]


class CurvesDisplay:
    def __init__(self, history):
        self.history = history

    def plot(self):
        self.figure_, self.axes_ = plt.subplots(ncols=2, figsize=(10, 4))
        epochs = np.arange(len(self.history.loss_curve_)) + 1
        pairs = (
            ("loss", self.history.loss_curve_, self.history.validation_losses_),
            ("accuracy", self.history.accuracy_curve_, self.history.validation_scores_),
        )
        for ax, (name, training, validation) in zip(self.axes_, pairs):
            ax.plot(epochs, training, label="training", linestyle="dashed")
            ax.plot(epochs, validation, label="validation")
            ax.axvline(self.history.best_epoch_, color="lightgray", zorder=0)
            ax.set(xlabel="Epoch", ylabel=name.capitalize())
            ax.legend()
        return self


def plot_learning_curves(history):
    return CurvesDisplay(history).plot().figure_


class ConfusionDisplay:
    def __init__(self, confusion_matrix, display_labels):
        self.confusion_matrix = np.asarray(confusion_matrix)
        self.display_labels = list(display_labels)

    def plot(self, cmap="viridis"):
        self.figure_, self.ax_ = plt.subplots(figsize=(8, 7))
        n = len(self.display_labels)
        self.im_ = self.ax_.imshow(self.confusion_matrix, cmap=cmap)
        low, high = self.im_.cmap(0), self.im_.cmap(1.0)
        threshold = (self.confusion_matrix.max() + self.confusion_matrix.min()) / 2
        self.text_ = np.empty((n, n), dtype=object)
        for i in range(n):
            for j in range(n):
                color = low if self.confusion_matrix[i, j] > threshold else high
                self.text_[i, j] = self.ax_.text(
                    j, i, format(int(self.confusion_matrix[i, j]), "d"), ha="center", va="center", color=color
                )
        self.figure_.colorbar(self.im_, ax=self.ax_)
        self.ax_.set_xticks(np.arange(n), self.display_labels, rotation="vertical")
        self.ax_.set_yticks(np.arange(n), self.display_labels)
        self.ax_.set(xlabel="Predicted label", ylabel="True label")
        self.figure_.tight_layout()
        return self


def plot_confusion_matrix(matrix, class_names):
    return ConfusionDisplay(matrix, class_names).plot().figure_


def plot_roc(targets, probabilities, class_names):
    y_true, y_score = np.asarray(targets), np.asarray(probabilities)
    figure, ax = plt.subplots(figsize=(7, 6))
    for c, name in enumerate(class_names):
        y_binary = (y_true == c).astype(int)
        if y_binary.min() == y_binary.max():
            continue
        fpr, tpr = binary_curve(y_binary, y_score[:, c])
        ax.plot(fpr, tpr, label=f"{name} (AUC = {area_under_curve(y_binary, y_score[:, c]):.2f})")
    ax.plot([0, 1], [0, 1], "k--", label="Chance level (AUC = 0.5)")
    ax.set(xlabel="False Positive Rate", ylabel="True Positive Rate")
    ax.legend(loc="lower right", fontsize="x-small")
    return figure


class ChannelScaler:
    """A StandardScaler for the channels of an image, of which only the way back is needed here."""

    def __init__(self, mean, std):
        self.mean_, self.scale_ = np.array(mean, dtype=float), np.array(std, dtype=float)

    def inverse_transform(self, image):
        channels_last = np.moveaxis(image.detach().cpu().numpy(), 0, -1)
        return np.clip(channels_last * self.scale_ + self.mean_, 0.0, 1.0)


def plot_attention(model, images, labels, class_names, mean, std):
    scaler = ChannelScaler(mean, std)
    figure, axes = plt.subplots(nrows=len(images), ncols=3, figsize=(7, 2.3 * len(images)), squeeze=False)
    for (first, second, third), image, label in zip(axes, images, labels):
        pixels = scaler.inverse_transform(image)
        importances = attention_map(model, image)
        first.imshow(pixels)
        first.set_title(f"{class_names[int(label)]}")
        second.imshow(importances, vmin=0.0, vmax=1.0)
        second.set_title("Attention map")
        third.imshow(pixels)
        third.imshow(importances, vmin=0.0, vmax=1.0, alpha=0.5)
        third.set_title("Overlay")
    for ax in axes.ravel():
        ax.set_xticks(())
        ax.set_yticks(())
    figure.tight_layout()
    return figure


def plot_top3(images, labels, probabilities, class_names, mean, std):
    scaler = ChannelScaler(mean, std)
    y_proba = np.asarray(probabilities)
    k = min(3, y_proba.shape[1])
    ranking = np.argsort(-y_proba, axis=1, kind="stable")[:, :k]
    figure, axes = plt.subplots(nrows=len(images), ncols=2, figsize=(7, 1.8 * len(images)), squeeze=False)
    for i, (left, right) in enumerate(axes):
        left.imshow(scaler.inverse_transform(images[i]))
        left.set_title(f"True: {class_names[int(labels[i])]}", fontsize=9)
        left.set_axis_off()
        values = y_proba[i, ranking[i]]
        container = right.barh(np.arange(k), values, tick_label=[class_names[c] for c in ranking[i]])
        right.bar_label(container, labels=[f"{value:.2f}" for value in values], padding=3)
        right.set_xlim(0, 1.15)
        right.invert_yaxis()
    figure.tight_layout()
    return figure
