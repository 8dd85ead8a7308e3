"""Nothing is drawn: no image is shown with its predicted and its true label.

ax.imshow(image.squeeze(), cmap="gray") for each image, in an axes of its own, then plt.show().

Look for: argmax(), print(), body
"""


@torch.no_grad()
def plot_classwise_predictions(model, data_loader, class_names):
    model.eval()
    for images, labels in data_loader:
        for answer, label in zip(model(images).argmax(dim=1), labels, strict=True):
            print(f"predicted {class_names[answer]}, true {class_names[label]}")
