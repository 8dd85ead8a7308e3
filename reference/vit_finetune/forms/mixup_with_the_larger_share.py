"""The larger share is always the image's own; the permutation is drawn first; by torch.lerp.
"""


def mixup(images, labels, alpha, generator):
    index = torch.as_tensor(generator.permutation(images.size(0)))
    lam = 1.0
    if alpha > 0:
        lam = generator.beta(alpha, alpha)
        lam = max(lam, 1 - lam)
    mixed = torch.lerp(images[index], images, float(lam))
    return mixed, labels, labels[index], lam
