"""True and predicted label are swapped: what is given as the true label is what the model predicts, and the
other way round.

The true label comes from the loader, the predicted one from model(images).argmax(dim=1): follow both to the
caption, through every tuple that they are packed into and taken out of.

Look for: set_title() | title() | set_xlabel() | xlabel() | text() | annotate()
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predicted = predictions(model, data_loader)
    _, axes = plt.subplots(len(class_names), samples_per_class)
    for label, row in enumerate(axes):
        chosen = (labels == label).nonzero().flatten().tolist()
        for ax, index in zip(row, chosen, strict=False):
            ax.imshow(images[index, 0], cmap="gray")
            ax.set_title(f"True: {class_names[predicted[index]]}, predicted: {class_names[labels[index]]}")
    plt.show()
