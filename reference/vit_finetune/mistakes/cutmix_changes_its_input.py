"""The images are mixed correctly, but the batch that was given is written into: whoever holds it finds mixed
images.

Write into images.clone().
"""


def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    height, width = images.shape[-2:]
    side = math.sqrt(1 - lam)
    rows, columns = round(side * height), round(side * width)
    row, column = int(generator.integers(height)), int(generator.integers(width))
    top, bottom = max(row - rows // 2, 0), min(row - rows // 2 + rows, height)
    left, right = max(column - columns // 2, 0), min(column - columns // 2 + columns, width)
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    source = images[order].clone()
    mixed = images
    mixed[..., top:bottom, left:right] = source[..., top:bottom, left:right]
    return mixed, labels, labels[order], 1 - (bottom - top) * (right - left) / (height * width)
