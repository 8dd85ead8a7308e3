"""When class_names comes in another order, the names on the images stay in the usual one: they are written in
the code, or sorted. The name of label i is class_names[i].

Take class_names[label] for both names, from the argument.

Look for: sorted() | sort(), set_title() | title() | set_xlabel() | xlabel() | text() | annotate()
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predicted = predictions(model, data_loader)
    names = sorted(class_names)
    _, axes = plt.subplots(len(names), samples_per_class)
    for label, row in enumerate(axes):
        for ax, index in zip(row, (labels == label).nonzero().flatten().tolist(), strict=False):
            ax.imshow(images[index, 0], cmap="gray")
            ax.set_title(f"True: {names[label]}, predicted: {names[predicted[index]]}")
    plt.show()
