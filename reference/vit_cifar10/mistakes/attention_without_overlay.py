"""The map is not laid over the image, or it hides the image.

imshow(picture), then imshow(heat, alpha=0.5) in the same axes: without alpha, the map hides what is below.
"""


def plot_attention(model, images, labels, class_names, mean, std):
    _, axes = plt.subplots(len(images), 3, figsize=(7, 2.4 * len(images)), squeeze=False)
    for row, image, label in zip(axes, images, labels, strict=True):
        picture, heat = shown(image, mean, std), attention_map(model, image)
        row[0].imshow(picture)
        row[0].set_title(class_names[int(label)])
        row[1].imshow(heat, cmap="viridis")
    plt.show()
