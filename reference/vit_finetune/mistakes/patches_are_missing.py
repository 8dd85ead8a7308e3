"""The image is shown, but its patches are not.

Look for: imshow()
"""


def show_patches(image, patch_size, mean, std):
    plt.figure(figsize=(3, 3))
    plt.imshow(shown(image, mean, std))
    plt.title(f"patches of {patch_size} pixels")
    plt.show()
