"""The images carry their predicted label, but not the true one: nobody can see where the model is wrong.

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
            ax.set_title(f"Predicted: {class_names[predicted[index]]}")
    plt.show()
