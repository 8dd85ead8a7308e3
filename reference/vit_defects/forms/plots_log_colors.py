"""Colors by the logarithm, counts written in; negatives, true names as texts of the figure beside the rows."""

import numpy as np


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    true, said = [], []
    with torch.inference_mode():
        for images, labels in data_loader:
            true.append(labels)
            said.append(model(images.to(device)).argmax(1).cpu())
    counts = confusion_matrix(torch.cat(true), torch.cat(said), labels=range(len(class_names)))
    plt.figure(figsize=(8, 7))
    ax = sns.heatmap(np.log1p(counts), annot=counts, fmt="d", cbar=False)
    ax.set_xticklabels([f"{i} {name[:6]}." for i, name in enumerate(class_names)], rotation=40)
    ax.set_yticklabels([f"{i} {name[:6]}." for i, name in enumerate(class_names)], rotation=0)
    ax.set(xlabel="y_pred", ylabel="y_true", title="colors: log(1 + count)")
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    images, labels, said = predictions(model, data_loader)
    rows = len(class_names)
    fig, grid = plt.subplots(rows, samples_per_class, figsize=(8, 11), gridspec_kw={"left": 0.25})
    for c in range(rows):
        for ax, i in zip(grid[c], torch.nonzero(labels == c).flatten()):
            ax.imshow(1 - (images[i, 0] * 0.5 + 0.5), cmap="gray")
            ax.set(xlabel=f"-> {class_names[said[i]]} (p = 0.9)", xticks=[], yticks=[])
        box = grid[c, 0].get_position()
        fig.text(0.02, (box.y0 + box.y1) / 2, class_names[c], weight="bold")
    fig.suptitle("4 examples per class")
    plt.show()
