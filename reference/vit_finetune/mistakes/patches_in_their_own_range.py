"""The image is stretched from its own least value to its greatest: these are not the colors that it had.

image * std + mean, channel by channel.

Look for: min() | amin() | max() | amax()
"""


def show_patches(image, patch_size, mean, std):
    picture = ((image - image.min()) / (image.max() - image.min())).permute(1, 2, 0).numpy()
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
