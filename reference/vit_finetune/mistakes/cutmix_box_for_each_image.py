"""Each image has a rectangle at a place of its own; there should be one place for the whole batch.

Draw the place once, before any loop over the images.

Look for: for
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
    mixed = images.clone()
    for number in range(len(images)):
        shift = number % max(width - (right - left), 1) - left
        a, b = max(left + shift, 0), min(right + shift, width)
        mixed[number, :, top:bottom, a:b] = images[order[number], :, top:bottom, a:b]
    return mixed, labels, labels[order], 1 - (bottom - top) * (right - left) / (height * width)
