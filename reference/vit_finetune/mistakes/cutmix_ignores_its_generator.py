"""The same state of the generator gives a different mix each time: something is drawn from elsewhere.

generator.permutation in place of torch.randperm, generator.integers in place of np.random.randint.

Look for: randperm() | randint() | torch.rand() | np.random.beta() | np.random.permutation() |
np.random.randint()
"""


def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    height, width = images.shape[-2:]
    side = math.sqrt(1 - lam)
    rows, columns = round(side * height), round(side * width)
    row, column = int(generator.integers(height)), int(generator.integers(width))
    top, bottom = max(row - rows // 2, 0), min(row - rows // 2 + rows, height)
    left, right = max(column - columns // 2, 0), min(column - columns // 2 + columns, width)
    order = torch.randperm(len(images), device=images.device)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images[order][..., top:bottom, left:right]
    return mixed, labels, labels[order], 1 - (bottom - top) * (right - left) / (height * width)
