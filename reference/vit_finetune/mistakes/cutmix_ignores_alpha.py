"""The size of the rectangle does not depend on alpha.

lam = generator.beta(alpha, alpha), and a rectangle of the area 1 - lam.

Look for: random() | uniform() | rand()
"""


def cutmix(images, labels, alpha, generator):
    lam = float(generator.random()) if alpha > 0 else 1.0
    height, width = images.shape[-2:]
    side = math.sqrt(1 - lam)
    rows, columns = round(side * height), round(side * width)
    row, column = int(generator.integers(height)), int(generator.integers(width))
    top, bottom = max(row - rows // 2, 0), min(row - rows // 2 + rows, height)
    left, right = max(column - columns // 2, 0), min(column - columns // 2 + columns, width)
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images[order][..., top:bottom, left:right]
    return mixed, labels, labels[order], 1 - (bottom - top) * (right - left) / (height * width)
