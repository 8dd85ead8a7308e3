"""The labels that some of the images carry are not their own true and predicted labels.

Take image, true label and prediction from the same place in the same batch.

Look for: set_title() | title() | set_xlabel() | xlabel() | text() | annotate()
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predicted = predictions(model, data_loader)
    _, axes = plt.subplots(len(class_names), samples_per_class)
    for label, row in enumerate(axes):
        chosen = (labels == label).nonzero().flatten().tolist()
        for ax, index in zip(row, chosen, strict=False):
            ax.imshow(images[index, 0], cmap="gray")
            ax.set_title(
                f"True: {class_names[labels[index - 1]]}, predicted: {class_names[predicted[index - 1]]}"
            )
    plt.show()
