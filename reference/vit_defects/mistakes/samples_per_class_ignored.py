"""There are four images of each class whatever samples_per_class asks for: the argument is not used.

Use samples_per_class for the columns of the grid and for how many images of a class are taken.

Look for: subplots() | subplot(), 4
"""


@torch.no_grad()
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    images = torch.cat([images for images, _ in data_loader])
    labels = torch.cat([labels for _, labels in data_loader])
    answers = model(images).argmax(dim=1)
    _, axes = plt.subplots(len(class_names), 4, squeeze=False)
    for label, row in enumerate(axes):
        for ax, index in zip(row, (labels == label).nonzero().flatten().tolist(), strict=False):
            ax.imshow(images[index].squeeze(), cmap="gray")
            ax.set_title(f"true {class_names[label]}, predicted {class_names[answers[index]]}")
    plt.show()
