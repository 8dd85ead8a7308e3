"""The patches are shown as they were normalized, in false colors.

image * std + mean, channel by channel.

Look for: imshow()
"""


def show_patches(image, patch_size, mean, std):
    picture = image.permute(1, 2, 0).clamp(0, 1).numpy()
    plt.figure(figsize=(3, 3))
    plt.imshow(picture)
    plt.title("the image")
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    _, axes = plt.subplots(rows, columns, figsize=(4, 4), squeeze=False)
    for row in range(rows):
        for column in range(columns):
            top, left = row * patch_size, column * patch_size
            axes[row, column].imshow(picture[top : top + patch_size, left : left + patch_size])
            axes[row, column].axis("off")
    plt.show()
