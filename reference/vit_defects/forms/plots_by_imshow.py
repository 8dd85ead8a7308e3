"""The matrix by imshow with texts; examples by predicted class, one image at a time, with numbers as titles.

Policy: examples_by_prediction
"""

import numpy as np


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    n = len(class_names)
    cm = np.zeros((n, n), dtype=int)
    with torch.no_grad():
        for images, labels in data_loader:
            for image, label in zip(images, labels):
                cm[label.item(), model(image.unsqueeze(0).to(device)).argmax(1).item()] += 1
    plt.figure(figsize=(8, 8))
    plt.imshow(cm, interpolation="nearest", cmap=plt.cm.Blues)
    plt.title("Confusion matrix")
    plt.colorbar()
    plt.xticks(np.arange(n), class_names, rotation=45)
    plt.yticks(np.arange(n), class_names)
    for i in range(n):
        for j in range(n):
            plt.text(j, i, format(cm[i, j], "d"), ha="center")
    plt.ylabel("True label")
    plt.xlabel("Predicted label")
    plt.show()
    plt.close()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    found = {i: [] for i in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            for i in range(images.size(0)):
                pred = model(images[i : i + 1].to(device)).argmax(dim=1).item()
                if len(found[pred]) < samples_per_class:
                    found[pred].append((images[i], labels[i].item(), pred))
    plt.figure(figsize=(12, 18))
    position = 1
    for group in found.values():
        for image, true, pred in group:
            plt.subplot(len(class_names), samples_per_class, position)
            plt.imshow(image.permute(1, 2, 0).numpy(), cmap="gray")
            plt.title(f"T:{true} P:{pred}")
            plt.axis("off")
            position += 1
    plt.show()
