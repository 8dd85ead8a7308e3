"""The model is put in training mode before it is run. Dropout then removes a random part of what the layers
compute, and the examples show a worse model than the one that was trained.

Begin plot_classwise_predictions with model.eval().

Look for: train()
"""


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.train()
    shown = dict.fromkeys(range(len(class_names)), 0)
    _, axes = plt.subplots(len(class_names), samples_per_class)
    for images, labels in data_loader:
        with torch.no_grad():
            predicted = model(images.to(device)).argmax(dim=1).tolist()
        for image, label, answer in zip(images, labels.tolist(), predicted, strict=True):
            if shown[label] < samples_per_class:
                ax = axes[label, shown[label]]
                ax.imshow(image[0], cmap="gray")
                ax.set_title(f"True: {class_names[label]}, predicted: {class_names[answer]}")
                shown[label] += 1
    plt.show()
