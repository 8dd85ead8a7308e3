"""Some images are shown more than once; the examples of each class should be different ones.

Move on to the next image of the class for every axes: a list of chosen images, and one of them per axes.

Look for: imshow()
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predicted = predictions(model, data_loader)
    _, axes = plt.subplots(len(class_names), samples_per_class)
    for label, row in enumerate(axes):
        chosen = (labels == label).nonzero().flatten().tolist()[:1] * samples_per_class
        for ax, index in zip(row, chosen, strict=False):
            ax.imshow(images[index, 0], cmap="gray")
            ax.set_title(f"True: {class_names[label]}, predicted: {class_names[predicted[index]]}")
    plt.show()
