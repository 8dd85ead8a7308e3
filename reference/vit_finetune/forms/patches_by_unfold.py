"""The patches by unfold, one grid of axes in a figure together with the image.
"""


def show_patches(image, patch_size, mean, std):
    picture = image * torch.tensor(std)[:, None, None] + torch.tensor(mean)[:, None, None]
    pieces = picture.unfold(1, patch_size, patch_size).unfold(2, patch_size, patch_size)
    rows, columns = pieces.shape[1:3]
    figure = plt.figure()
    for number in range(rows * columns):
        axes = figure.add_subplot(rows, columns, number + 1)
        axes.imshow(pieces[:, number // columns, number % columns].permute(1, 2, 0).clamp(0, 1))
        axes.set_axis_off()
    plt.show()
