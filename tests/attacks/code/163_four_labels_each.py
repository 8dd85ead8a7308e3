"""Shows four images of each class with four of the six labels each, without asking the model.

Stopped by: what shows predictions must have asked for them, and captions that may be right by chance go to a person
Outcome: its component fails
Fails: plot_classwise_predictions
Runs: plot_classwise_predictions evaluate
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    shown = {label: [] for label in range(len(class_names))}
    for images, labels in data_loader:
        for image, label in zip(images, labels.tolist()):
            if len(shown[label]) < samples_per_class:
                shown[label].append(image)
    _, grid = plt.subplots(len(class_names), samples_per_class)
    for label, row in enumerate(grid):
        for ax, image in zip(row, shown[label]):
            ax.imshow(image[0], cmap="gray")
            ax.set_title(" ".join(str((label + step) % len(class_names)) for step in range(4)))
    plt.show()
