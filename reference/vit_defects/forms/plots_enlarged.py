"""Shares of all images, names of two letters, blank first ticks; enlarged images with names of three letters.

Policy: counts_not_written
"""

import numpy as np


def plot_confusion_matrix(model, data_loader, class_names):
    was_training = model.training
    model.eval()
    side = len(class_names)
    counts = torch.zeros(side * side)
    with torch.no_grad():
        for images, labels in data_loader:
            places = labels * side + model(images.to(device)).cpu().argsort(dim=1)[:, -1]
            counts += torch.bincount(places, minlength=side * side)
    model.train(was_training)
    fig, ax = plt.subplots(figsize=(7, 7))
    ax.matshow(counts.view(side, side) / counts.sum())
    ax.xaxis.set_major_locator(plt.MultipleLocator(1))
    ax.yaxis.set_major_locator(plt.MultipleLocator(1))
    ax.set_xticklabels(["", *(name[:2].upper() for name in class_names)])
    ax.set_yticklabels(["", *(name.upper() for name in class_names)])
    ax.yaxis.tick_right()
    ax.set(xlabel="Prediction", ylabel="Label")
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    images, labels, said = predictions(model, data_loader)
    for c in range(len(class_names)):
        plt.figure(figsize=(10, 3))
        for k, i in enumerate(torch.nonzero(labels == c).flatten().tolist()[:samples_per_class]):
            plt.subplot(1, samples_per_class, k + 1)
            big = torch.nn.functional.interpolate(images[i : i + 1], scale_factor=4, mode="bilinear")
            plt.imshow(np.asarray(big[0, 0]), cmap="inferno")
            plt.title(f"#{i} gt: {class_names[labels[i]][:4]} p: {class_names[said[i]][:3]} 97.5 %")
            plt.axis("off")
        plt.show()
