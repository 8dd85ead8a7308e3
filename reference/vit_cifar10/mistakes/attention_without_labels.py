"""The images are shown without the names of their classes."""


def plot_attention(model, images, labels, class_names, mean, std):
    _, axes = plt.subplots(len(images), 3, figsize=(7, 2.4 * len(images)), squeeze=False)
    for row, image, label in zip(axes, images, labels, strict=True):
        picture, heat = shown(image, mean, std), attention_map(model, image)
        row[0].imshow(picture)
        row[1].imshow(heat, cmap="viridis")
        row[2].imshow(picture)
        row[2].imshow(heat, cmap="jet", alpha=0.45)
    plt.show()
