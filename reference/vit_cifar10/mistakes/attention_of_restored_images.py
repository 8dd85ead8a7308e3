"""The map is that of the image whose normalization was undone: the model was trained on normalized ones.

Undo the normalization in a copy, for showing alone: mul_ and add_ change the image itself.

Look for: mul_() | add_() | _ * std + mean, attention_map()
"""


def plot_attention(model, images, labels, class_names, mean, std):
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (mean, std))
    _, axes = plt.subplots(len(images), 3, figsize=(7, 2.4 * len(images)), squeeze=False)
    for row, image, label in zip(axes, images, labels, strict=True):
        image.mul_(std).add_(mean)
        picture, heat = image.permute(1, 2, 0).clamp(0, 1).numpy(), attention_map(model, image)
        row[0].imshow(picture)
        row[0].set_title(class_names[int(label)])
        row[1].imshow(heat, cmap="viridis")
        row[2].imshow(picture)
        row[2].imshow(heat, cmap="jet", alpha=0.45)
    plt.show()
