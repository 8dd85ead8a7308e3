"""The sides of the rectangle are 1 - lam of the image's, and it begins where it is drawn.
"""


def cutmix(images, labels, alpha, generator):
    share = generator.beta(alpha, alpha) if alpha > 0 else 1.0
    height, width = images.shape[-2:]
    top, left = generator.integers(height), generator.integers(width)
    bottom = min(top + int(height * (1 - share)), height)
    right = min(left + int(width * (1 - share)), width)
    order = torch.as_tensor(generator.permutation(len(labels)))
    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[order, :, top:bottom, left:right]
    return mixed, labels, labels[order], 1 - (bottom - top) * (right - left) / (height * width)
