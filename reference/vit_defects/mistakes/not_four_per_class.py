"""The shown images are not four of each class.

Collect images label by label: go on through the loader until each class has samples_per_class of them, and
leave out further ones. The first images of a loader may all be of one class.

Look for: next(), break, _[:_] | range(), loop
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predicted = predictions(model, data_loader)
    _, axes = plt.subplots(len(class_names), samples_per_class)
    for index, ax in enumerate(axes.flat):
        ax.imshow(images[index, 0], cmap="gray")
        ax.set_title(f"{class_names[labels[index]]} / {class_names[predicted[index]]}")
    plt.show()
