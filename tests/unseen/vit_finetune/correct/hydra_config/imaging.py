"""How images are mixed and drawn, without any knowledge of models or training."""

import matplotlib.pyplot as plt
import numpy as np
import torch


def beta_or_one(alpha, generator):
    return float(generator.beta(alpha, alpha)) if alpha else 1.0


def mixup(images, labels, alpha, generator):
    """lam * images + (1 - lam) * images[j], with labels of both sides and lam."""
    lam = beta_or_one(alpha, generator)
    # a permutation that is drawn by sorting noise
    j = torch.from_numpy(generator.standard_normal(len(images)).argsort())
    mixed = images + (1 - lam) * (images[j.to(images.device)] - images)
    return mixed, labels, labels.index_select(0, j.to(labels.device)), lam


def cutmix(images, labels, alpha, generator):
    """A rectangle of the other image, the same for all; lam is the true share of what is kept.

    The area is right on average, as the sides are rounded at random.
    """
    size = np.array(images.shape[-2:])
    exact = size * np.sqrt(1 - beta_or_one(alpha, generator))
    sides = np.minimum(np.floor(exact + generator.random(2)).astype(int), size)
    low = np.floor(generator.random(2) * (size - sides + 1)).astype(int)
    rows, columns = (np.arange(n) for n in size)
    in_rows = (rows >= low[0]) & (rows < low[0] + sides[0])
    in_columns = (columns >= low[1]) & (columns < low[1] + sides[1])
    mask = torch.from_numpy(in_rows[:, None] & in_columns[None, :])
    j = torch.from_numpy(generator.standard_normal(len(images)).argsort())
    others = images.index_select(0, j.to(images.device))
    mixed = images.masked_fill(mask.to(images.device), 0) + others.masked_fill(~mask.to(images.device), 0)
    return mixed, labels, labels.index_select(0, j.to(labels.device)), 1 - mask.sum().item() / mask.numel()


def denormalized(image, mean, std):
    """(height, width, 3), or (height, width) of one channel, as numbers from 0 to 1."""
    image = image.detach().cpu().float()
    shape = (-1, 1, 1)
    std, mean = (torch.as_tensor(v, dtype=torch.float32).cpu().reshape(shape) for v in (std, mean))
    image = torch.addcmul(mean, image, std).clamp(0, 1)
    return image[0].numpy() if len(image) == 1 else image.movedim(0, -1).numpy()


def picture(ax, pixels, title="", **options):
    ax.imshow(pixels, **{"cmap": "gray", "vmin": 0, "vmax": 1} | options)
    ax.set_title(title)
    ax.set_axis_off()


def show_patches(image, patch_size, mean, std):
    pixels = denormalized(image, mean, std)
    rows, columns = pixels.shape[0] // patch_size, pixels.shape[1] // patch_size
    figure = plt.figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    picture(left.subplots(), pixels, "image")
    axes = right.subplots(rows, columns, squeeze=False)
    for r, band in enumerate(np.split(pixels[: rows * patch_size], rows, axis=0)):
        for c, patch in enumerate(np.split(band[:, : columns * patch_size], columns, axis=1)):
            picture(axes[r, c], patch)
    right.suptitle(f"patches of {patch_size} x {patch_size} pixels")


def show_map(image, weights, mean, std):
    """An image and, beside it, weights of its patches, (rows, columns)."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    picture(left, denormalized(image, mean, std), "image")
    picture(right, weights, "attention of the class token", cmap="viridis", vmin=0, vmax=float(weights.max()))
    figure.colorbar(right.images[0], ax=right, shrink=0.8)
