"""The rectangle lies around the same point each time; its place should be drawn, too.

generator.integers(height) and generator.integers(width) draw its middle.

Look for: mixed
"""


def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    height, width = images.shape[-2:]
    side = math.sqrt(1 - lam)
    rows, columns = round(side * height), round(side * width)
    top, left = (height - rows) // 2, (width - columns) // 2
    bottom, right = top + rows, left + columns
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images[order][..., top:bottom, left:right]
    return mixed, labels, labels[order], 1 - rows * columns / (height * width)
