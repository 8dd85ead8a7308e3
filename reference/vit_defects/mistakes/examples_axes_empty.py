"""The axes of the figure stay empty: no image is drawn into any of them.

Look at what the loop over the axes goes through: where the list of a class is empty, imshow is never reached.

Look for: imshow(), subplots(), body
"""

from collections import defaultdict


@torch.no_grad()
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    examples = defaultdict(list)
    for images, labels in data_loader:
        for image, answer, label in zip(images, model(images).argmax(dim=1), labels, strict=True):
            examples[class_names[label]].append((image, class_names[answer]))
    figure, grid = plt.subplots(len(class_names), samples_per_class)
    for label, row in enumerate(grid):
        for ax, (image, answer) in zip(row, examples[label], strict=False):
            ax.imshow(image.squeeze(), cmap="gray")
            ax.set_title(f"predicted {answer}, true {class_names[label]}")
    plt.show()
