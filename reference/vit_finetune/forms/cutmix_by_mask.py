"""The rectangle is a mask, and lam is the mask's mean.
"""


def cutmix(images, labels, alpha, generator):
    lam = generator.beta(alpha, alpha) if alpha > 0 else 1.0
    height, width = images.shape[2], images.shape[3]
    y, x = generator.uniform(0, height), generator.uniform(0, width)
    half_h, half_w = height * (1 - lam) ** 0.5 / 2, width * (1 - lam) ** 0.5 / 2
    rows = (torch.arange(height) + 0.5 - y).abs() < half_h
    columns = (torch.arange(width) + 0.5 - x).abs() < half_w
    mask = (rows[:, None] & columns[None, :]).float()
    order = torch.from_numpy(generator.permutation(len(images)))
    mixed = torch.where(mask.bool(), images[order], images)
    return mixed, labels, labels[order], 1 - mask.mean().item()
