"""Height and width are exchanged, where the rectangle is drawn or where it is cut: with square images nobody
notices, with others its area is wrong.

images[:, :, top:bottom, left:right]: the last axis of (batch, channels, height, width) is the width.

Look for: _.shape[-2:] | _.shape[2:], _.shape
"""


def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    width, height = images.shape[-2:]
    side = math.sqrt(1 - lam)
    rows, columns = round(side * height), round(side * width)
    row, column = int(generator.integers(height)), int(generator.integers(width))
    top, bottom = max(row - rows // 2, 0), min(row - rows // 2 + rows, height)
    left, right = max(column - columns // 2, 0), min(column - columns // 2 + columns, width)
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images[order][..., top:bottom, left:right]
    return mixed, labels, labels[order], 1 - (bottom - top) * (right - left) / (height * width)
