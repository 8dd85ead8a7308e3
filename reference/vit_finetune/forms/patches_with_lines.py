"""The image with lines between its patches.
"""


def show_patches(image, patch_size, mean, std):
    mean, std = np.array(mean).reshape(-1, 1, 1), np.array(std).reshape(-1, 1, 1)
    picture = np.clip(image.numpy() * std + mean, 0, 1).transpose(1, 2, 0)
    fig, ax = plt.subplots()
    ax.imshow(picture)
    for edge in range(0, picture.shape[0] + 1, patch_size):
        ax.axhline(edge - 0.5, color="white")
        ax.axvline(edge - 0.5, color="white")
    ax.set_title("patches")
    return fig
