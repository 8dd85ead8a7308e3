"""The images carry their true label, but not the predicted one: where the model is wrong, its answer is
nowhere to be read.

Write both on each image: the label from the loader and the class that the model predicts for this image.

Look for: set_title() | title() | set_xlabel() | xlabel() | text() | annotate()
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predicted = predictions(model, data_loader)
    _, axes = plt.subplots(len(class_names), samples_per_class)
    for label, row in enumerate(axes):
        chosen = (labels == label).nonzero().flatten().tolist()
        for ax, index in zip(row, chosen, strict=False):
            ax.imshow(images[index, 0], cmap="gray")
            ax.set_title(f"True: {class_names[label]}")
    plt.show()
